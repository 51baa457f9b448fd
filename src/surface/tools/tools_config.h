/* tools_config.h - a sandbox as executors of tools configure one: presets, and an object on top of them.
 *
 *   {"preset": "standard", "template": "base", "isolation": "jail",
 *    "resource_limits": {"cpu_cores": 2, "memory_mb": 512, "disk_mb": 1024, "timeout_seconds": 60,
 *                        "max_processes": 50},
 *    "network": {"enabled": false, "allowed_domains": []},
 *    "security": {...},          policy_config.h
 *    "session_timeout_minutes": 60, "auto_cleanup": true, "working_directory": "/workspace"} */
#ifndef COVE_SURFACE_TOOLS_TOOLS_CONFIG_H
#define COVE_SURFACE_TOOLS_TOOLS_CONFIG_H

#include "server/form/form.h"
#include "server/serve/exchange.h"
#include "wire/agent.h"
#include "wire/limits.h"

#define TOOLS_SECURITY_MAX 3072 /* JSON text of the security object */
#define TOOLS_DOMAINS_MAX  4096 /* JSON text of the allowed domains */

struct tools_config {
    const char *preset; /* a name of the table */
    char template[64];  /* "": the keeper's default */
    /* the server's default template, if there is none of that name: E2B's base is always there */
    bool or_default;
    struct limits limits;
    uint64_t timeout_ms; /* of a command that was given none */
    uint64_t session_ms;
    bool auto_cleanup; /* end it after the session, rather than pause it */
    bool root;
    char isolation[32]; /* "": the default */
    bool network;       /* it has egress … */
    bool network_said;  /* … or not, by the caller's own word */
    /* Long texts come last: making a config sets only their first byte. */
    char workdir[1024];                /* "": the user's home */
    char security[TOOLS_SECURITY_MAX]; /* "": the tenant's policy */
    /* where egress leads: a JSON array of rules; "": to all that is public */
    char domains[TOOLS_DOMAINS_MAX];
};

struct tools_preset {
    const char *name;
    uint64_t cpu_milli, memory_mb, disk_mb, processes;
    uint64_t timeout_s, session_min;
    bool network; /* where the server has egress at all */
    const char *help;
};
extern const struct tools_preset tools_presets[];
extern const size_t tools_preset_count;

/* NULL or an unknown name: ERR_INVALID. */
int tools_config_preset(struct app *app, struct tools_config *config, const char *name,
                        struct err *err);
/* What a request's object may have. */
extern const struct form tools_config_form;
/* All of it; `default` goes to ret_default. */
int tools_config_read(struct exchange *x, json_t *object, struct tools_config *ret,
                      bool *ret_default, struct err *err);
json_t *tools_config_json(const struct tools_config *config);

#endif
