#include "agent/proc/ahead.h"

#include "agent/proc/procs.h"
#include "agent/proc/shepherd.h"
#include "base/own.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define IDLE_MS 250
#define MOST_MS 1000 /* that the command may take */

/* What a login shell does before its command, without what the template's files say. The kernel makes room for as many processes at once as with
 * Debian's /etc/profile: the shepherd, the shell, one that the shell forks, and the program. */
#define LIKE_A_LOGIN                                                                               \
    ": $(: $(/usr/bin/id -u)); for f in /etc/profile /etc/profile.d/*.sh ~/.bash_profile "         \
    "~/.bash_login ~/.profile; do test -f \"$f\" && : <\"$f\"; done"
/* No program of the user's own, and no file that the shell would run first. */
#define NOTHING_OF_OTHERS "PATH=/usr/bin:/bin\0ENV=\0BASH_ENV="

static struct agent *whose;
static struct timer timer;
static int control = -1; /* of the command's shepherd */

void ahead_end(void)
{
    static const struct shepherd_order order = { .what = ORDER_KILL };

    if (control < 0)
        return;
    loop_disarm(&whose->loop, &timer);
    (void) send(control, &order, sizeof order, MSG_DONTWAIT | MSG_NOSIGNAL);
    own_close(&control);
}

static void on_late(struct timer *late)
{
    (void) late;
    ahead_end();
}

/* As fork_shepherd(), of a command that no client has. The agent reaps the shepherd as any child. */
static void start(struct agent *agent)
{
    char args[sizeof((struct user *) 0)->shell + sizeof "-c\0" LIKE_A_LOGIN];
    struct agent_request request = {
        .version = AGENT_VERSION,
        .env = { .data = NOTHING_OF_OTHERS, .len = sizeof NOTHING_OF_OTHERS, .count = 3 }
    };
    struct spawn spawn;
    struct user user;
    struct err ignored;
    int pair[2];

    if (user_find(AGENT_ETC, agent->base.user, agent->base.root_profile, &user, &ignored) < 0)
        return;
    request.args.count = 3;
    request.args.data = args;
    request.args.len =
        (uint32_t) snprintf(args, sizeof args, "%s%c-c%c" LIKE_A_LOGIN, user.shell, 0, 0) + 1;
    if (spawn_prepare(&spawn, &agent->base, &request, &user, &ignored) < 0)
        return;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        if (fork() == 0)
            shepherd_main(&spawn, pair[1], false, procs_unburden, agent);
        control = pair[0];
        (void) close(pair[1]);
        loop_arm(&agent->loop, &timer, MOST_MS, on_late);
    }
    spawn_done(&spawn);
}

static void on_idle(struct timer *idle)
{
    (void) idle;
    if (whose->last_handle == 0 && whose->worker_count == 0)
        start(whose);
}

void ahead_begin(struct agent *agent)
{
    whose = agent;
    loop_arm(&agent->loop, &timer, IDLE_MS, on_idle);
}
