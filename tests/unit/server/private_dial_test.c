/* Places of dials between sandboxes: one tenant takes all that it can get, and another does not notice. What a dial asks of others never
 * answers here, until it is let go. */
#include "check.h"

#include "server/app/app.h"
#include "server/gateway/gateway.h"
#include "server/life/private_dial.h"
#include "server/net/network.h"

#include <poll.h>
#include <pthread.h>

#define DIALS 3000
#define HALF  2048 /* of the places */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;
static bool gone;
static unsigned waiting, refused, answered;

static int hang(struct app *app, struct link *link, struct err *err)
{
    (void) app, (void) link;
    (void) pthread_mutex_lock(&lock);
    waiting++;
    while (!gone)
        (void) pthread_cond_wait(&let_go, &lock);
    (void) pthread_mutex_unlock(&lock);
    return err_set(err, ERR_NO_PORT, "nothing");
}

static void note(struct gateway *gateway, const struct egress_dial *dial, int fd,
                 const struct err *why)
{
    (void) gateway, (void) dial, (void) fd;
    (void) pthread_mutex_lock(&lock);
    if (strcmp(why->msg, "too many connections to other sandboxes wait") == 0)
        refused++;
    else
        answered++;
    (void) pthread_mutex_unlock(&lock);
}

static struct gateway *no_gateway(struct app *app)
{
    (void) app;
    return NULL;
}

#define app_link_take   hang
#define gateway_dialed  note
#define network_gateway no_gateway
#define private_dial    dial_of_test
void dial_of_test(void *context, const struct egress_dial *dial);
#include "../../../src/server/life/private_dial.c"

static unsigned now(const unsigned *what)
{
    unsigned value;

    (void) pthread_mutex_lock(&lock);
    value = *what;
    (void) pthread_mutex_unlock(&lock);
    return value;
}

static bool becomes(const unsigned *what, unsigned wanted)
{
    for (unsigned i = 0; i < 30000 && now(what) != wanted; i++)
        (void) poll(NULL, 0, 1);
    return now(what) == wanted;
}

static void ask_for(const char *tenant, unsigned sandbox)
{
    struct egress_dial ask = { .port = 80 };

    (void) snprintf(ask.tenant, sizeof ask.tenant, "%s", tenant);
    (void) snprintf(ask.to, sizeof ask.to, "i%s%u", tenant, sandbox);
    dial_of_test(NULL, &ask);
}

static void a_tenant_alone_gets_half_of_the_places(void)
{
    for (unsigned i = 0; i < DIALS; i++)
        ask_for("greedy", i % 300);
    CHECK_INT(now(&refused), DIALS - HALF);
}

static void of_these_a_share_is_served_at_once(void)
{
    CHECK(becomes(&waiting, PER_TENANT));
}

static void another_tenant_is_served_meanwhile(void)
{
    ask_for("modest", 1);
    CHECK(becomes(&waiting, PER_TENANT + 1));
    CHECK_INT(now(&refused), DIALS - HALF);
}

static void one_sandbox_takes_no_more_than_its_own_share(void)
{
    for (unsigned i = 0; i < 20; i++)
        ask_for("modest", 2);
    CHECK(becomes(&waiting, PER_TENANT + 1 + PER_SANDBOX));
    CHECK_INT(now(&refused), DIALS - HALF);
}

static void what_ends_makes_room(void)
{
    (void) pthread_mutex_lock(&lock);
    gone = true;
    (void) pthread_cond_broadcast(&let_go);
    (void) pthread_mutex_unlock(&lock);
    CHECK(becomes(&answered, HALF + 21));
    ask_for("greedy", 1);
    CHECK(becomes(&answered, HALF + 22));
    CHECK_INT(now(&refused), DIALS - HALF);
}

CHECK_MAIN(T(a_tenant_alone_gets_half_of_the_places), T(of_these_a_share_is_served_at_once),
           T(another_tenant_is_served_meanwhile), T(one_sandbox_takes_no_more_than_its_own_share),
           T(what_ends_makes_room))
