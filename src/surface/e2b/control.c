/* The control plane: what the SDKs ask of E2B's API. */
#include "surface/e2b/control.h"

#include "base/own.h"
#include "surface/e2b/surfaces.h"

/* clang-format off */
static const struct route control_routes[] = {
    /* method        path                         who         body       handler */
    { METHOD_POST,   "/v2/sandboxes",             SCOPE_RUN,  256 * KiB, control_create_v2 },
    { METHOD_POST,   "/sandboxes",                SCOPE_RUN,  256 * KiB, control_create_v1 },
    { METHOD_GET,    "/v2/sandboxes",             SCOPE_READ, 0,         control_list },
    { METHOD_GET,    "/sandboxes",                SCOPE_READ, 0,         control_list_v1 },
    { METHOD_GET,    "/sandboxes/metrics",        SCOPE_READ, 0,         control_metrics_many }, /* before :id */
    { METHOD_GET,    "/sandboxes/:id",            SCOPE_READ, 0,         control_get },
    { METHOD_DELETE, "/sandboxes/:id",            SCOPE_RUN,  0,         control_kill },
    { METHOD_POST,   "/v2/sandboxes/:id/connect", SCOPE_RUN,  4 * KiB,   control_connect_v2 },
    { METHOD_POST,   "/sandboxes/:id/connect",    SCOPE_RUN,  4 * KiB,   control_connect_v1 },
    { METHOD_POST,   "/sandboxes/:id/pause",      SCOPE_RUN,  4 * KiB,   control_pause },
    { METHOD_POST,   "/sandboxes/:id/resume",     SCOPE_RUN,  4 * KiB,   control_resume },
    { METHOD_POST,   "/sandboxes/:id/timeout",    SCOPE_RUN,  4 * KiB,   control_set_timeout },
    { METHOD_POST,   "/sandboxes/:id/refreshes",  SCOPE_RUN,  4 * KiB,   control_refresh },
    { METHOD_PUT,    "/sandboxes/:id/network",    SCOPE_RUN,  64 * KiB,  control_network_put },
    { METHOD_GET,    "/sandboxes/:id/metrics",    SCOPE_READ, 0,         control_metrics },
    { METHOD_GET,    "/sandboxes/:id/logs",       SCOPE_READ, 0,         control_logs_v1 },
    { METHOD_GET,    "/v2/sandboxes/:id/logs",    SCOPE_READ, 0,         control_logs_v2 },
    { METHOD_POST,   "/sandboxes/:id/snapshots",  SCOPE_RUN,  64 * KiB,  control_snapshot },
    { METHOD_POST,   "/sandboxes/:id/fork",       SCOPE_RUN,  64 * KiB,  control_fork },
    { METHOD_GET,    "/snapshots",                SCOPE_READ, 0,         control_snapshots },
    { METHOD_POST,   "/volumes",                  SCOPE_RUN,  64 * KiB,  control_volume_create },
    { METHOD_GET,    "/volumes",                  SCOPE_READ, 0,         control_volume_list },
    { METHOD_GET,    "/volumes/:volume",          SCOPE_READ, 0,         control_volume_get },
    { METHOD_DELETE, "/volumes/:volume",          SCOPE_RUN,  0,         control_volume_remove },

    /* Templates. Builds of the old kind, by a registry, are not offered, and each says so. */
    { METHOD_GET,    "/templates",                SCOPE_READ, 0,         control_template_list },
    { METHOD_GET,    "/v2/templates",             SCOPE_READ, 0,         control_template_list },
    { METHOD_POST,   "/templates",                SCOPE_RUN,  MiB,       control_build_absent },
    { METHOD_POST,   "/v2/templates",             SCOPE_RUN,  MiB,       control_build_absent },
    { METHOD_POST,   "/v3/templates",             SCOPE_RUN,  MiB,       control_template_make },
    { METHOD_POST,   "/templates/tags",           SCOPE_RUN,  64 * KiB,  control_template_tag },
    { METHOD_DELETE, "/templates/tags",           SCOPE_RUN,  64 * KiB,  control_template_untag },
    { METHOD_GET,    "/templates/aliases/:alias", SCOPE_READ, 0,         control_template_alias },
    { METHOD_GET,    "/templates/:template",      SCOPE_READ, 0,         control_template_get },
    { METHOD_PATCH,  "/templates/:template",      SCOPE_RUN,  64 * KiB,  control_template_patch },
    { METHOD_PATCH,  "/v2/templates/:template",   SCOPE_RUN,  64 * KiB,  control_template_patch },
    { METHOD_DELETE, "/templates/:template",      SCOPE_RUN,  0,         control_snapshot_delete }, /* after tags */
    { METHOD_GET,    "/templates/:template/tags", SCOPE_READ, 0,         control_template_tags },
    { METHOD_GET,    "/templates/:template/files/:hash", SCOPE_RUN , 0,  control_build_files },
    { METHOD_POST,   "/v2/templates/:template/builds/:build", SCOPE_RUN, 4 * MiB, control_build_submit },
    { METHOD_GET,    "/templates/:template/builds/:build/status", SCOPE_READ, 0, control_build_status },
    { METHOD_GET,    "/templates/:template/builds/:build/logs", SCOPE_READ, 0, control_build_status },
    { METHOD_ANY,    "/volumecontent/*",          SCOPE_READ, BODY_ANY,  control_volume_content_absent },
    { METHOD_POST,   "/secrets",                  SCOPE_RUN,  64 * KiB,  control_secrets_absent },
    { METHOD_GET,    "/secrets",                  SCOPE_READ, 0,         control_secrets_absent },
    { METHOD_GET,    "/secrets/:secret",          SCOPE_READ, 0,         control_secrets_absent },
    { METHOD_POST,   "/secrets/:secret",          SCOPE_RUN,  64 * KiB,  control_secrets_absent },
    { METHOD_DELETE, "/secrets/:secret",          SCOPE_RUN,  0,         control_secrets_absent },
};
/* clang-format on */

const struct surface e2b_control = { .name = "e2b",
                                     .routes = control_routes,
                                     .route_count = ARRAY_LEN(control_routes),
                                     .slashes = true, /* team/template */
                                     .settle = control_settle,
                                     .refuse = e2b_refuse };
