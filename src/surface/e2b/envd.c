/* envd: over HTTP (files, health) and over Connect RPC (processes, file system), one table. */
#include "surface/e2b/envd.h"

#include "base/own.h"
#include "surface/e2b/surfaces.h"

#include <string.h>

/* clang-format off */
static const struct route envd_routes[] = {
    /* method        path                         who         body       handler */
    { METHOD_GET,    "/health",                   SCOPE_READ, 0,         envd_health },
    { METHOD_POST,   "/process.Process/Start",       SCOPE_RUN,  4 * MiB,   process_start },
    { METHOD_POST,   "/process.Process/Connect",     SCOPE_RUN,  64 * KiB,  process_connect },
    { METHOD_POST,   "/process.Process/List",        SCOPE_READ, 64 * KiB,  process_list },
    { METHOD_POST,   "/process.Process/SendInput",   SCOPE_RUN,  4 * MiB,   process_send_input },
    { METHOD_POST,   "/process.Process/StreamInput", SCOPE_RUN,  BODY_ANY,  process_stream_input },
    { METHOD_POST,   "/process.Process/CloseStdin",  SCOPE_RUN,  64 * KiB,  process_close_stdin },
    { METHOD_POST,   "/process.Process/Update",      SCOPE_RUN,  64 * KiB,  process_update },
    { METHOD_POST,   "/process.Process/SendSignal",  SCOPE_RUN,  64 * KiB,  process_send_signal },
    { METHOD_GET,    "/metrics",                  SCOPE_READ, 0,         envd_metrics },
    { METHOD_GET,    "/envs",                     SCOPE_READ, 0,         envd_envs },
    { METHOD_GET,    "/files",                    SCOPE_READ, 0,         envd_download },
    { METHOD_POST,   "/files",                    SCOPE_RUN,  BODY_ANY,  envd_upload },
    { METHOD_POST,   "/files/compose",            SCOPE_RUN,  1 * MiB,   envd_compose },
    { METHOD_POST,   "/filesystem.Filesystem/Stat",             SCOPE_READ, 64 * KiB, filesystem_stat },
    { METHOD_POST,   "/filesystem.Filesystem/MakeDir",          SCOPE_RUN,  64 * KiB, filesystem_make_dir },
    { METHOD_POST,   "/filesystem.Filesystem/Move",             SCOPE_RUN,  64 * KiB, filesystem_move },
    { METHOD_POST,   "/filesystem.Filesystem/Remove",           SCOPE_RUN,  64 * KiB, filesystem_remove },
    { METHOD_POST,   "/filesystem.Filesystem/ListDir",          SCOPE_READ, 64 * KiB, filesystem_list_dir },
    { METHOD_POST,   "/filesystem.Filesystem/WatchDir",         SCOPE_READ, 64 * KiB, filesystem_watch_dir },
    { METHOD_POST,   "/filesystem.Filesystem/CreateWatcher",    SCOPE_READ, 64 * KiB, filesystem_create_watcher },
    { METHOD_POST,   "/filesystem.Filesystem/GetWatcherEvents", SCOPE_READ, 64 * KiB, filesystem_get_watcher_events },
    { METHOD_POST,   "/filesystem.Filesystem/RemoveWatcher",    SCOPE_READ, 64 * KiB, filesystem_remove_watcher },
};
/* clang-format on */

static bool envd_claims(struct exchange *x)
{
    uint16_t port;

    return e2b_target(x, &port) && port == E2B_ENVD_PORT;
}

/* Who may what: /health is anybody's, /files takes a signature in the token's place, all else wants the token. */
static int envd_identify(struct exchange *x, struct err *err)
{
    const struct head *head = exchange_head(x);
    struct ops_sandbox sandbox;
    struct e2b_notes notes;
    const char *operation = NULL;

    if (e2b_target_caller(x, &sandbox, err) < 0)
        return -1;
    if (exchange_set_param(x, "template", sandbox.template) < 0)
        return err_set(err, ERR_INTERNAL, "no room for the name of a template");
    e2b_notes_read(sandbox.notes, &notes);
    if (!notes.secure || slice_is(head_path(head), "/health"))
        return 0;
    if (slice_is(head_path(head), "/files"))
        operation = head->method == METHOD_POST ? "write" : "read";
    return e2b_check_access(x, sandbox.id, operation, err);
}

const struct surface e2b_envd = { .name = "e2b-envd",
                                  .claims = envd_claims,
                                  .greet = envd_greet,
                                  .routes = envd_routes,
                                  .route_count = ARRAY_LEN(envd_routes),
                                  .identify = envd_identify,
                                  .refuse = e2b_refuse };
