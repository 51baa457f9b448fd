/* coved: the HTTP server. Runs without privilege; what it may do with sandboxes it asks of the keeper. */
#include "api/app.h"
#include "api/server.h"
#include "base/io.h"
#include "base/log.h"

#include <stdio.h>
#include <sys/resource.h>

static void raise_descriptor_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &files);
    }
}

int main(int argc, char **argv)
{
    static struct app app;
    bool check = false;
    struct err err;

    log_init("coved", LOG_INFO);
    if (config_load(&app.config, argc, argv, &check, &err) < 0) {
        (void) fprintf(stderr, "coved: %s\n", err.msg);
        return err_kind_info(err.kind)->exit_code;
    }
    if (check) {
        (void) puts("the configuration is fine");
        return 0;
    }
    if (app.config.verbose)
        log_init("coved", LOG_DEBUG);
    raise_descriptor_limit();
    app.started_ms = io_now_ms();
    (void) pthread_mutex_init(&app.lock, NULL);
    if (server_run(&app, &err) < 0) {
        log_line(LOG_ERROR, "cannot serve: %s", err.msg);
        return err_kind_info(err.kind)->exit_code;
    }
    return 0;
}
