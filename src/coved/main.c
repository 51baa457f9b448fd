/* coved: the HTTP server. Runs without privilege; what it may do with sandboxes it asks of the keeper. */
#include "base/io.h"
#include "base/log.h"
#include "coved/rights.h"
#include "server/app/app.h"
#include "server/build/build.h"
#include "server/guard/policy_gate.h"
#include "server/guard/quota.h"
#include "server/life/crew.h"
#include "server/life/deadline.h"
#include "server/life/history.h"
#include "server/life/idle.h"
#include "server/life/pool.h"
#include "server/life/private_dial.h"
#include "server/life/shrink.h"
#include "server/life/upkeep.h"
#include "server/net/network.h"
#include "server/net/secrets.h"
#include "server/serve/admin.h"
#include "server/serve/cert.h"
#include "server/serve/server.h"
#include "store/store.h"
#include "surface/tools/tools.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static void raise_descriptor_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* Signals are the server's to wait for: blocked here, before the first thread is started. */
static void block_signals(void)
{
    sigset_t set;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGINT);
    (void) sigaddset(&set, SIGHUP);
    (void) pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* The only server of its state directory, before anything is made in it. */
static int lock_state(const struct config *config, struct err *err)
{
    static int held_fd; /* never closed */

    return store_lock(config->state, &held_fd, err);
}

static int set_up(struct app *app, struct err *err)
{
    block_signals();
    if (lock_state(app_config(app), err) < 0 || network_prepare(app_config(app), err) < 0 ||
        admin_prepare(app, err) < 0)
        return -1;
    if (rights_drop(app_config(app), config_path(app->argc, app->argv), err) < 0)
        return -1;
    if (store_open(app_config(app)->state, &app->store, err) < 0)
        return -1;
    app->quota = quota_new();
    if (!app->quota)
        return err_set(err, ERR_NO_MEMORY, "no memory for quotas");
    if (!(app->gate = policy_gate_new(app_config(app)->policy, app_config(app)->e2b_policy, err)) ||
        !(app->tools = tools_new(err)) || secrets_start(app, err) < 0 ||
        network_start(app, private_dial, err) < 0)
        return -1;
    crew_start(app);
    return deadline_start(app, err) < 0 || upkeep_start(app, err) < 0 ||
                   history_start(app, err) < 0 || pool_start(app, err) < 0 ||
                   idle_start(app, err) < 0 || shrink_start(app, err) < 0 ||
                   build_start(app, err) < 0
               ? -1
               : 0;
}

/* coved make-cert DIR DOMAIN keep|force, for `cove cert dev`: 0 made, 1 kept, 2 refused. */
static int make_cert(char **argv)
{
    char why[200];
    int r = cert_dev(argv[2], argv[3], strcmp(argv[4], "force") == 0, why, sizeof why);

    if (r < 0)
        (void) fprintf(stderr, "cove: %s\n", why);
    return r < 0 ? 2 : r == 0;
}

int main(int argc, char **argv)
{
    static struct config config;
    static struct app app;
    bool check = false;
    struct err err, ignored;
    int r;

    if (argc == 5 && strcmp(argv[1], "make-cert") == 0)
        return make_cert(argv);
    log_init("coved", LOG_INFO);
    if (config_load(&config, argc, argv, &check, &err) < 0) {
        (void) fprintf(stderr, "coved: %s\n", err.msg);
        return err_kind_info(err.kind)->exit_code;
    }
    if (check) {
        (void) puts("the configuration is fine");
        return 0;
    }
    log_init("coved", config.verbose ? LOG_DEBUG : LOG_INFO);
    app.argc = argc;
    app.argv = argv;
    atomic_init(&app.config, &config);
    raise_descriptor_limit();
    app.started_ms = io_now_ms();
    (void) pthread_mutex_init(&app.lock, NULL);
    if (set_up(&app, &err) < 0) {
        (void) fprintf(stderr, "coved: %s\n", err.msg);
        return err_kind_info(err.kind)->exit_code;
    }
    r = server_run(&app, &err);
    if (r < 0)
        log_line(LOG_ERROR, "cannot serve: %s", err.msg);
    app_cut(&app); /* what the threads below wait for */
    build_stop();
    deadline_stop();
    upkeep_stop();
    history_stop();
    pool_stop();
    idle_stop();
    crew_stop();
    shrink_stop();
    /* Not closed: requests that were cut may still look at the store, until the process ends. */
    (void) store_audit_flush(app.store, &ignored);
    return r < 0 ? err_kind_info(err.kind)->exit_code : 0;
}
