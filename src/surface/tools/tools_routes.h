/* tools_routes.h - the rows of the tools surface, policy and metrics, for routes.c. */
#ifndef COVE_SURFACE_TOOLS_TOOLS_ROUTES_H
#define COVE_SURFACE_TOOLS_TOOLS_ROUTES_H

#include "server/guard/policy_gate.h"
#include "surface/tools/page.h"
#include "surface/tools/tools.h"

int metrics_route(struct exchange *x, struct err *err);
/* POST /v1/policy/analyze and GET /v1/policy/violations?risk= */
int policy_route_analyze(struct exchange *x, struct err *err);
int policy_route_violations(struct exchange *x, struct err *err);
extern const struct form policy_question_form;

/* The object "security": known fields of the right types. What they say is policy_from_json's to judge. */
extern const struct form policy_rules_form;
int policy_rules_read(struct caller *caller, json_t *security, struct err *err);

/* clang-format off */
#define TOOLS_ROUTES \
    { METHOD_GET,    "/",                     SCOPE_NONE,  0,          page_root }, \
    { METHOD_GET,    "/docs",                 SCOPE_NONE,  0,          page_docs }, \
    { METHOD_GET,    "/health",               SCOPE_NONE,  0,          page_health }, \
    { METHOD_GET,    "/metrics",              SCOPE_ADMIN, 0,          metrics_route }, \
    { METHOD_POST,   "/execute",              SCOPE_RUN,   TOOLS_BODY, tools_route_execute, &tools_execute_form }, \
    { METHOD_POST,   "/bash",                 SCOPE_RUN,   TOOLS_BODY, tools_route_bash, &tool_bash_body_form }, \
    { METHOD_POST,   "/file/read",            SCOPE_RUN,   TOOLS_BODY, tools_route_read, &tool_read_body_form }, \
    { METHOD_POST,   "/file/write",           SCOPE_RUN,   TOOLS_BODY, tools_route_write, &tool_write_body_form }, \
    { METHOD_POST,   "/search",               SCOPE_RUN,   TOOLS_BODY, tools_route_search, &tool_search_body_form }, \
    { METHOD_POST,   "/sandbox",              SCOPE_RUN,   TOOLS_BODY, tools_route_sandbox_make, &tools_config_form }, \
    { METHOD_GET,    "/sandbox",              SCOPE_READ,  0,          tools_route_sandbox_get }, \
    { METHOD_DELETE, "/sandbox",              SCOPE_RUN,   0,          tools_route_sandbox_end }, \
    { METHOD_GET,    "/tools",                SCOPE_READ,  0,          tools_route_list }, \
    { METHOD_GET,    "/presets",              SCOPE_READ,  0,          tools_route_presets }, \
    { METHOD_GET,    "/audit-logs",           SCOPE_READ,  0,          tools_route_audit }, \
    { METHOD_GET,    "/stats",                SCOPE_READ,  0,          tools_route_stats }, \
    { METHOD_POST,   "/v1/policy/analyze",    SCOPE_READ,  TOOLS_BODY, policy_route_analyze, &policy_question_form }, \
    { METHOD_GET,    "/v1/policy/violations", SCOPE_READ,  0,          policy_route_violations },
/* clang-format on */

#endif
