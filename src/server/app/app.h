/* app.h - what every request can reach: settings, the keeper, the store. Made once at start. */
#ifndef COVE_SERVER_APP_APP_H
#define COVE_SERVER_APP_APP_H

#include "base/admin_socket.h"
#include "client/link.h"
#include "server/app/config.h"
#include "server/app/metrics.h"

#include <pthread.h>
#include <stdatomic.h>

struct quota;
struct store;
struct policy_gate;
struct tools;
struct network;
struct network_log;

#define APP_LINKS_MAX 64
#define APP_TAKEN_MAX 65536 /* descriptors; those beyond are not cut */

struct app {
    _Atomic(const struct config *) config; /* by app_config(): SIGHUP puts another in its place */
    int argc; /* for SIGHUP: settings are read again from all that they were read from */
    char **argv;
    int admin_fd; /* <state>/cove.sock; -1: none */
    struct admin_rule admin_rule;
    bool loopback; /* listens there, so that config.local can mean something */
    struct store *store;
    struct policy_gate *gate;
    struct tools *tools;             /* default sandboxes of the tools surface */
    struct network *network;         /* the gateway; NULL: no sandbox has egress */
    struct network_log *network_log; /* what it saw; NULL as well */
    char *sandbox_ca;                /* PEM of authorities that all sandboxes trust; NULL: none */
    struct metrics metrics;
    struct quota *quota;
    uint64_t started_ms; /* monotonic */
    atomic_uint_fast64_t requests, refused;
    pthread_mutex_t lock;                   /* all below */
    char default_template[KEEPER_NAME_MAX]; /* as the keeper had said last; "": not asked yet */
    size_t link_count;
    struct link links[APP_LINKS_MAX];   /* idle links to the keeper */
    bool cut;                           /* app_cut: no more */
    uint64_t taken[APP_TAKEN_MAX / 64]; /* a bit for each descriptor of a link that is in use */
};

/* The settings of now. They stay readable for as long as the process lives: a request that began under the old ones
 * may end under them. */
const struct config *app_config(struct app *app);

/* A link to the keeper for one caller at a time; give it back, or drop it after a failure. */
int app_link_take(struct app *app, struct link *ret, struct err *err);
void app_link_give(struct app *app, struct link *link, bool healthy);
/* Whether the keeper answers, and what it says of itself. */
bool app_keeper_up(struct app *app, struct keeper_hello *ret);
/* Which template a create gets that names none, by what the keeper said last: a create has KEEPER_FLAG_DEFAULT then. fresh: it is asked
 * for again. "" if there is none. */
int app_default_template(struct app *app, bool fresh, char ret[KEEPER_NAME_MAX], struct err *err);
/* At the end: threads that wait for the keeper hear that it went away, and no thread asks it any more. What it was asked for it does. */
void app_cut(struct app *app);

#endif
