#include "server/serve/surface.h"

#include "base/own.h"
#include "server/net/network_rules.h"
#include "server/net/preview_rules.h"
#include "surface/tools/tools_routes.h"
#include "surface/v1/v1.h"

/* clang-format off */
const struct route routes[] = {
    /* method        path                                       who         body       handler, form of a JSON body */
    TOOLS_ROUTES
    { METHOD_GET,    "/openapi.yaml",                           SCOPE_NONE, 0,         v1_openapi },

    { METHOD_POST,   "/v1/run",                                 SCOPE_RUN,  32 * MiB,  v1_run, &v1_run_form },
    { METHOD_GET,    "/v1/session",                             SCOPE_RUN,  0,         v1_session },
    { METHOD_POST,   "/v1/sandboxes",                           SCOPE_RUN,  512 * KiB, v1_sandbox_create, &v1_create_form },
    { METHOD_GET,    "/v1/sandboxes",                           SCOPE_READ, 0,         v1_sandbox_list },
    { METHOD_GET,    "/v1/sandboxes/:id",                       SCOPE_READ, 0,         v1_sandbox_get },
    { METHOD_DELETE, "/v1/sandboxes/:id",                       SCOPE_RUN,  0,         v1_sandbox_kill },
    { METHOD_POST,   "/v1/sandboxes/:id/extend",                SCOPE_RUN,  4 * KiB,   v1_sandbox_extend, &v1_extend_form },
    { METHOD_POST,   "/v1/sandboxes/:id/pause",                 SCOPE_RUN,  4 * KiB,   v1_sandbox_pause, &v1_pause_form },
    { METHOD_POST,   "/v1/sandboxes/:id/resume",                SCOPE_RUN,  4 * KiB,   v1_sandbox_resume, &v1_resume_form },
    { METHOD_POST,   "/v1/sandboxes/:id/snapshots",             SCOPE_RUN,  4 * KiB,   v1_snapshot_create, &v1_save_form },
    { METHOD_POST,   "/v1/sandboxes/:id/fork",                  SCOPE_RUN,  4 * KiB,   v1_sandbox_fork, &v1_fork_form },
    { METHOD_GET,    "/v1/snapshots",                           SCOPE_READ, 0,         v1_snapshot_list },
    { METHOD_GET,    "/v1/snapshots/:snapshot",                 SCOPE_READ, 0,         v1_snapshot_get },
    { METHOD_DELETE, "/v1/snapshots/:snapshot",                 SCOPE_RUN,  0,         v1_snapshot_delete },
    { METHOD_GET,    "/v1/sandboxes/:id/stats",                 SCOPE_READ, 0,         v1_sandbox_stats },
    { METHOD_GET,    "/v1/sandboxes/:id/network",               SCOPE_READ, 0,         v1_network_get },
    { METHOD_PUT,    "/v1/sandboxes/:id/network",               SCOPE_RUN,  128 * KiB, v1_network_put, &network_form },
    { METHOD_POST,   "/v1/sandboxes/:id/network/allow",         SCOPE_RUN,  4 * KiB,   v1_network_allow, &v1_allow_form },
    { METHOD_GET,    "/v1/sandboxes/:id/network/events",        SCOPE_READ, 0,         v1_network_events },
    { METHOD_GET,    "/v1/sandboxes/:id/preview",               SCOPE_RUN,  0,         v1_preview_get },
    { METHOD_PUT,    "/v1/sandboxes/:id/preview",               SCOPE_RUN,  4 * KiB,   v1_preview_put, &preview_form },
    { METHOD_POST,   "/v1/sandboxes/:id/preview/roll",          SCOPE_RUN,  4 * KiB,   v1_preview_roll },
    { METHOD_GET,    "/v1/templates",                           SCOPE_READ, 0,         v1_template_list },
    { METHOD_GET,    "/v1/templates/:name",                     SCOPE_READ, 0,         v1_template_get },
    { METHOD_PATCH,  "/v1/templates/:name",                     SCOPE_ADMIN, 4 * KiB,  v1_template_patch, &v1_template_form },
    { METHOD_DELETE, "/v1/templates/:name",                     SCOPE_RUN,  0,         v1_template_delete },
    { METHOD_POST,   "/v1/templates/:name/tags",                SCOPE_RUN,  16 * KiB,  v1_template_tag, &v1_tag_form },
    { METHOD_DELETE, "/v1/templates/:name/tags/:tag",           SCOPE_RUN,  0,         v1_template_untag },
    { METHOD_GET,    "/v1/builds/files/:hash",                  SCOPE_READ, 0,         v1_build_files_get },
    { METHOD_PUT,    "/v1/builds/files/:hash",                  SCOPE_RUN,  BODY_ANY,  v1_build_files_put },
    { METHOD_POST,   "/v1/builds",                              SCOPE_RUN,  4 * MiB,   v1_build_create, &v1_build_form },
    { METHOD_GET,    "/v1/builds",                              SCOPE_READ, 0,         v1_build_list },
    { METHOD_GET,    "/v1/builds/:build",                       SCOPE_READ, 0,         v1_build_get },
    { METHOD_DELETE, "/v1/builds/:build",                       SCOPE_RUN,  0,         v1_build_cancel },
    { METHOD_GET,    "/v1/builds/:build/logs",                  SCOPE_READ, 0,         v1_build_logs },
    { METHOD_POST,   "/v1/volumes",                             SCOPE_RUN,  4 * KiB,   v1_volume_create, &v1_volume_form },
    { METHOD_GET,    "/v1/volumes",                             SCOPE_READ, 0,         v1_volume_list },
    { METHOD_GET,    "/v1/volumes/:name",                       SCOPE_READ, 0,         v1_volume_get },
    { METHOD_DELETE, "/v1/volumes/:name",                       SCOPE_RUN,  0,         v1_volume_remove },
    { METHOD_GET,    "/v1/networks",                            SCOPE_READ, 0,         v1_networks_list },
    { METHOD_POST,   "/v1/networks",                            SCOPE_RUN,  4 * KiB,   v1_networks_make, &v1_networks_form },
    { METHOD_GET,    "/v1/networks/:name",                      SCOPE_READ, 0,         v1_networks_get },
    { METHOD_DELETE, "/v1/networks/:name",                      SCOPE_RUN,  0,         v1_networks_remove },
    { METHOD_PUT,    "/v1/networks/:name/members/:sandbox",     SCOPE_RUN,  4 * KiB,   v1_networks_join, &network_member_form },
    { METHOD_DELETE, "/v1/networks/:name/members/:sandbox",     SCOPE_RUN,  0,         v1_networks_leave },
    { METHOD_GET,    "/v1/tenant/network",                      SCOPE_READ, 0,         v1_network_default_get },
    { METHOD_PUT,    "/v1/tenant/network",                      SCOPE_ADMIN, 128 * KiB, v1_network_default_put, &network_form },
    { METHOD_DELETE, "/v1/tenant/network",                      SCOPE_ADMIN, 0,        v1_network_default_delete },
    { METHOD_GET,    "/v1/sandboxes/:id/refusals",              SCOPE_READ, 0,         v1_refusal_list },
    { METHOD_GET,    "/v1/sandboxes/:id/ports",                 SCOPE_READ, 0,         v1_port_list },
    { METHOD_POST,   "/v1/sandboxes/:id/ports/:port/link",      SCOPE_RUN,  4 * KiB,   v1_port_link, &v1_link_form },
    { METHOD_ANY,    "/v1/sandboxes/:id/ports/:port/*",         SCOPE_RUN,  BODY_ANY,  v1_port_relay },
    { METHOD_GET,    "/v1/sandboxes/:id/tunnel/:port",          SCOPE_RUN,  0,         v1_port_tunnel },

    { METHOD_POST,   "/v1/sandboxes/:id/exec",                  SCOPE_RUN,  4 * MiB,   v1_exec, &v1_exec_form },
    { METHOD_POST,   "/v1/sandboxes/:id/processes",             SCOPE_RUN,  1 * MiB,   v1_process_start, &v1_process_form },
    { METHOD_GET,    "/v1/sandboxes/:id/processes",             SCOPE_READ, 0,         v1_process_list },
    { METHOD_GET,    "/v1/sandboxes/:id/processes/:proc",        SCOPE_READ, 0,         v1_process_get },
    { METHOD_GET,    "/v1/sandboxes/:id/processes/:proc/output", SCOPE_READ, 0,         v1_process_output },
    { METHOD_POST,   "/v1/sandboxes/:id/processes/:proc/stdin",  SCOPE_RUN,  1 * MiB,   v1_process_stdin },
    { METHOD_POST,   "/v1/sandboxes/:id/processes/:proc/signal", SCOPE_RUN,  4 * KiB,   v1_process_signal, &v1_signal_form },
    { METHOD_GET,    "/v1/sandboxes/:id/terminal",              SCOPE_RUN,  0,         v1_terminal },

    { METHOD_GET,    "/v1/sandboxes/:id/files",                 SCOPE_READ, 0,         v1_file_get },
    { METHOD_PUT,    "/v1/sandboxes/:id/files",                 SCOPE_RUN,  BODY_ANY,  v1_file_put },
    { METHOD_DELETE, "/v1/sandboxes/:id/files",                 SCOPE_RUN,  0,         v1_file_delete },
    { METHOD_GET,    "/v1/sandboxes/:id/files/tar",             SCOPE_READ, 0,         v1_tar_get },
    { METHOD_PUT,    "/v1/sandboxes/:id/files/tar",             SCOPE_RUN,  BODY_ANY,  v1_tar_put },
    { METHOD_GET,    "/v1/sandboxes/:id/files/stat",            SCOPE_READ, 0,         v1_file_stat },
    { METHOD_GET,    "/v1/sandboxes/:id/files/list",            SCOPE_READ, 0,         v1_file_list },
    { METHOD_GET,    "/v1/sandboxes/:id/files/glob",            SCOPE_READ, 0,         v1_file_glob },
    { METHOD_GET,    "/v1/sandboxes/:id/files/search",          SCOPE_READ, 0,         v1_file_search },
    { METHOD_GET,    "/v1/sandboxes/:id/files/watch",           SCOPE_READ, 0,         v1_file_watch },
    { METHOD_POST,   "/v1/sandboxes/:id/files/sign",            SCOPE_READ, 64 * KiB,  v1_file_sign, &v1_sign_form },
    { METHOD_POST,   "/v1/sandboxes/:id/files/mkdir",           SCOPE_RUN,  64 * KiB,  v1_file_mkdir, &v1_mkdir_form },
    { METHOD_POST,   "/v1/sandboxes/:id/files/move",            SCOPE_RUN,  64 * KiB,  v1_file_move, &v1_move_form },
    { METHOD_POST,   "/v1/sandboxes/:id/files/chmod",           SCOPE_RUN,  64 * KiB,  v1_file_chmod, &v1_chmod_form },

    { METHOD_GET,    "/v1/pools",                               SCOPE_ADMIN, 0,        v1_pools_get },
    { METHOD_PUT,    "/v1/pools/:template",                     SCOPE_ADMIN, 4 * KiB,  v1_pool_set, &v1_pool_form },
    { METHOD_DELETE, "/v1/pools/:template",                     SCOPE_ADMIN, 0,        v1_pool_unset },
    { METHOD_DELETE, "/v1/pools",                               SCOPE_ADMIN, 0,        v1_pools_drain },

    { METHOD_GET,    "/v1/tenants",                             SCOPE_OPERATOR, 0,     v1_tenant_list },
    { METHOD_POST,   "/v1/tenants",                             SCOPE_OPERATOR, 128 * KiB, v1_tenant_add, &v1_tenant_form },
    { METHOD_GET,    "/v1/tenants/:tenant",                     SCOPE_OPERATOR, 0,     v1_tenant_get },
    { METHOD_PATCH,  "/v1/tenants/:tenant",                     SCOPE_OPERATOR, 128 * KiB, v1_tenant_change, &v1_tenant_change_form },
    { METHOD_DELETE, "/v1/tenants/:tenant",                     SCOPE_OPERATOR, 0,     v1_tenant_remove },
    { METHOD_GET,    "/v1/keys",                                SCOPE_OPERATOR, 0,     v1_key_list },
    { METHOD_POST,   "/v1/keys",                                SCOPE_OPERATOR, 4 * KiB, v1_key_create, &v1_key_form },
    { METHOD_DELETE, "/v1/keys/:key",                           SCOPE_OPERATOR, 0,     v1_key_revoke },
    { METHOD_GET,    "/v1/audit",                               SCOPE_OPERATOR, 0,     v1_audit_list },
    { METHOD_POST,   "/v1/audit/verify",                        SCOPE_OPERATOR, 4 * KiB, v1_audit_verify, &v1_verify_form },
    { METHOD_POST,   "/v1/audit/prune",                         SCOPE_OPERATOR, 4 * KiB, v1_audit_prune, &v1_prune_form },

    { METHOD_GET,    "/v1/host/templates",                      SCOPE_OPERATOR, 0,     v1_host_template_list },
    { METHOD_GET,    "/v1/host/templates/:name",                SCOPE_OPERATOR, 0,     v1_host_template_get },
    { METHOD_PUT,    "/v1/host/templates/:name",                SCOPE_OPERATOR, 4 * KiB, v1_host_template_put, &v1_host_made_form },
    { METHOD_PATCH,  "/v1/host/templates/:name",                SCOPE_OPERATOR, 128 * KiB, v1_host_template_patch, &v1_host_template_form },
    { METHOD_DELETE, "/v1/host/templates/:name",                SCOPE_OPERATOR, 0,     v1_host_template_delete },
    { METHOD_POST,   "/v1/host/gc",                             SCOPE_OPERATOR, 4 * KiB, v1_host_gc, &v1_gc_form },
    { METHOD_POST,   "/v1/host/copy",                           SCOPE_OPERATOR, 4 * KiB, v1_host_copy },

    { METHOD_GET,    "/v1/secrets",                             SCOPE_READ, 0,         v1_secret_list },
    { METHOD_PUT,    "/v1/secrets/:name",                       SCOPE_RUN,  64 * KiB,  v1_secret_put, &v1_secret_form },
    { METHOD_DELETE, "/v1/secrets/:name",                       SCOPE_RUN,  0,         v1_secret_delete },
};
/* clang-format on */
const size_t route_count = ARRAY_LEN(routes);

const struct surface native_surface = {
    .name = "v1", .routes = routes, .route_count = ARRAY_LEN(routes), .settle = v1_settle
};
