#include "surface/tools/tools_config.h"

#include "base/own.h"
#include "egress/reach.h"
#include "server/form/form.h"
#include "server/guard/policy_config.h"
#include "server/guard/policy_gate.h"
#include "server/net/network_rules.h"
#include "surface/tools/tools_routes.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MEGA (1024ull * 1024)

/* clang-format off */
const struct tools_preset tools_presets[] = {
    /* name         cpu   MB    disk  procs  command s  session min  network */
    { "minimal",     500,  256,  256,   32,    30,   15, false, "small and strict: short scripts" },
    { "standard",   1000,  512, 1024,  128,   120,   60, false, "what a call without a sandbox gets" },
    { "development", 2000, 2048, 4096, 1024,  600,  240, true,  "builds and tests, with a network" },
};
/* clang-format on */
const size_t tools_preset_count = ARRAY_LEN(tools_presets);

int tools_config_preset(struct app *app, struct tools_config *config, const char *name,
                        struct err *err)
{
    static _Atomic uint64_t known; /* the C library opens a file for it */
    uint64_t cores = atomic_load(&known);
    uint64_t most_ms = app_config(app)->sandbox_timeout_most_ms;

    if (cores == 0) {
        cores = (uint64_t) sysconf(_SC_NPROCESSORS_ONLN);
        atomic_store(&known, cores);
    }
    for (size_t i = 0; i < tools_preset_count; i++) {
        const struct tools_preset *preset = &tools_presets[i];

        if (!name || strcmp(preset->name, name) != 0)
            continue;
        /* The rules in JSON, thousands of bytes, are "" by their first. */
        memset(config, 0, offsetof(struct tools_config, workdir));
        config->workdir[0] = config->security[0] = config->domains[0] = '\0';
        config->preset = preset->name;
        limits_default(&config->limits);
        /* A preset fits every host and its settings; what is asked for by number is refused when it does not. */
        config->limits.cpu_milli =
            preset->cpu_milli < cores * 1000 ? preset->cpu_milli : cores * 1000;
        config->limits.memory_bytes = preset->memory_mb * MEGA;
        config->limits.disk_bytes = preset->disk_mb * MEGA;
        config->limits.processes = preset->processes;
        config->timeout_ms = preset->timeout_s * 1000;
        config->session_ms = preset->session_min * 60000;
        if (config->session_ms > most_ms)
            config->session_ms = most_ms;
        config->auto_cleanup = true;
        config->network = preset->network && app->network;
        return 0;
    }
    return err_set(err, ERR_INVALID, "preset must be minimal, standard or development");
}

struct limits_wish {
    uint64_t cpu_milli, memory, disk, timeout, processes;
};

#define AT(member) offsetof(struct limits_wish, member)
/* clang-format off */
static const struct form_field limits_rows[] = {
    { "cpu_cores", FORM_MILLI, .at = AT(cpu_milli), 10, 1024000, "processors, such as 0.5" },
    { "memory_mb", FORM_COUNT, .at = AT(memory), 8, 4u << 20, "memory, in MiB" },
    { "disk_mb", FORM_COUNT, .at = AT(disk), 1, 16u << 20, "disk, in MiB" },
    { "timeout_seconds", FORM_COUNT, .at = AT(timeout), 1, 86400, "of a command that is given no timeout" },
    { "max_processes", FORM_COUNT, .at = AT(processes), 4, 30000, "processes at once" },
};
/* clang-format on */
#undef AT
static const struct form limits_form = FORM_OF(limits_rows);

static int read_limits(struct exchange *x, json_t *object, struct tools_config *config,
                       struct err *err)
{
    struct limits_wish w = { .memory = config->limits.memory_bytes / MEGA,
                             .disk = config->limits.disk_bytes / MEGA,
                             .timeout = config->timeout_ms / 1000,
                             .processes = config->limits.processes,
                             .cpu_milli = config->limits.cpu_milli };

    if (form_read_within(exchange_caller(x), "resource_limits.", object, &limits_form, &w, err) < 0)
        return -1;
    config->limits.cpu_milli = w.cpu_milli;
    config->limits.memory_bytes = w.memory * MEGA;
    config->limits.disk_bytes = w.disk * MEGA;
    config->limits.processes = w.processes;
    config->timeout_ms = w.timeout * 1000;
    return 0;
}

struct network_wish {
    json_t *domains;
    bool enabled;
};

/* clang-format off */
static const struct form_field network_rows[] = {
    { "enabled", FORM_BOOL, .at = offsetof(struct network_wish, enabled), .help = "whether the sandbox has a network" },
    { "allowed_domains", FORM_ARRAY, .at = offsetof(struct network_wish, domains),
      .help = "hosts it may reach, such as pypi.org; none: every public address" },
};
/* clang-format on */
static const struct form reach_form = FORM_OF(network_rows);

/* Without domains: every public address. Domains without `enabled` are a wish that was not finished. */
static int read_network(struct exchange *x, json_t *object, struct tools_config *config,
                        struct err *err)
{
    struct network_wish w = { .enabled = config->network };
    json_t *domains, *item;
    size_t i, len = 0;

    if (form_read_within(exchange_caller(x), "network.", object, &reach_form, &w, err) < 0)
        return -1;
    domains = w.domains;
    if (!w.enabled && json_array_size(domains) > 0)
        return form_bad(exchange_caller(x), err, "network.allowed_domains", "needs enabled");
    json_array_foreach(domains, i, item)
    {
        struct reach_rule rule;

        if (!json_is_string(item) || reach_rule_parse(json_string_value(item), &rule, err) < 0)
            return form_bad(exchange_caller(x), err, "network.allowed_domains",
                            "item %zu must be a domain", i);
        if (network_may_name(exchange_caller(x), &rule, err) < 0) {
            (void) exchange_blame(x, "network.allowed_domains", NULL, NULL);
            return err_wrap(err, "network.allowed_domains");
        }
    }
    if (json_array_size(domains) > REACH_MAX)
        return form_bad(exchange_caller(x), err, "network.allowed_domains",
                        "must have at most %d items", REACH_MAX);
    if (json_array_size(domains) > 0)
        len = json_dumpb(domains, config->domains, sizeof config->domains - 1, JSON_COMPACT);
    if (len >= sizeof config->domains)
        return form_bad(exchange_caller(x), err, "network.allowed_domains", "longer than %d bytes",
                        TOOLS_DOMAINS_MAX - 1);
    config->domains[len] = '\0';
    config->network = w.enabled;
    config->network_said = true;
    return 0;
}

/* Who may only run things may not loosen what the tenant was given: rules that were asked for are refused then, rules
 * that a preset brings along are left out. true: they count. */
static bool may_have(struct exchange *x, const struct policy *policy, bool asked, struct err *err)
{
    const char *member = NULL;
    char name[64];

    if (exchange_caller(x)->scope >= SCOPE_ADMIN ||
        policy_gate_within(exchange_app(x), policy, &member, err) == 0)
        return true;
    if (asked) {
        (void) snprintf(name, sizeof name, "security.%s", member);
        (void) exchange_blame(x, name, "policy-loosened", "policy");
        (void) err_wrap(err, "a key of scope run may only tighten its policy");
    }
    return false;
}

/* Checked here, kept as text: the gate reads it again. */
static int read_security(struct exchange *x, json_t *object, bool asked,
                         struct tools_config *config, struct err *err)
{
    auto_free struct policy *policy = calloc(1, sizeof *policy);
    auto_free char *text = NULL;
    const char *field = NULL;
    char name[64];

    if (!policy)
        return err_set(err, ERR_NO_MEMORY, "no memory for the policy");
    if (policy_rules_read(exchange_caller(x), object, err) < 0)
        return -1;
    if (policy_from_json(policy, object, config->preset, &field, err) < 0) {
        (void) snprintf(name, sizeof name, "security%s%s", field ? "." : "", field ? field : "");
        return exchange_blame(x, name, NULL, NULL);
    }
    if (!may_have(x, policy, asked, err)) {
        policy_done(policy);
        return asked ? -1 : 0;
    }
    config->root = policy->allow_root;
    policy_done(policy);
    text = json_dumps(object, JSON_COMPACT);
    if (!text || strlen(text) >= sizeof config->security)
        return form_bad(exchange_caller(x), err, "security", "longer than %d bytes",
                        TOOLS_SECURITY_MAX - 1);
    (void) strcpy(config->security, text);
    return 0;
}

static int read_workdir(struct exchange *x, const char *path, struct tools_config *config,
                        struct err *err)
{
    if (path[0] != '/' || strstr(path, "/../") || strlen(path) >= sizeof config->workdir)
        return form_bad(exchange_caller(x), err, "working_directory", "must be an absolute path");
    (void) strcpy(config->workdir, path);
    return 0;
}

struct config_wish {
    const char *preset, *template, *isolation, *workdir;
    const char *e2b_template; /* of configurations that were written for E2B */
    json_t *limits, *network, *security;
    uint64_t minutes;
    bool cleanup, as_default;
};

#define AT(member) offsetof(struct config_wish, member)
static const char *const preset_names[] = { "minimal", "standard", "development", NULL };
/* clang-format off */
static const struct form_field config_rows[] = {
    { "preset", FORM_TEXT, .at = AT(preset), .choices = preset_names, .fallback = "standard",
      .help = "limits and policy to begin with; development has more of everything, and a network" },
    { "template", FORM_CONTENT, .at = AT(template), .most = 63, .help = "what the sandbox is made of (default: the server's)" },
    { "e2b_template", FORM_CONTENT, .at = AT(e2b_template), .most = 63, .unlisted = true,
      .help = "the same as template; 'base' is the default template where none was built" },
    { "sandbox_type", FORM_IGNORED, .help = "of configurations for E2B; has no meaning here", .unlisted = true },
    { "e2b_api_key", FORM_IGNORED, .help = "of configurations for E2B; has no meaning here, and is not kept", .unlisted = true },
    { "isolation", FORM_CONTENT, .at = AT(isolation), .most = 31, .unlisted = true,
      .help = "what isolates it from the host: jail, gvisor, vm or vm-emulated (default: the server's)" },
    { "resource_limits", FORM_OBJECT, .at = AT(limits), .help = "other limits than the preset's", .items = &limits_form },
    { "network", FORM_OBJECT, .at = AT(network), .help = "what the sandbox may reach", .items = &reach_form },
    { "security", FORM_OBJECT, .at = AT(security), .help = "rules on top of the preset's; docs/policy.md", .items = &policy_rules_form,
      .unlisted = true },
    { "session_timeout_minutes", FORM_COUNT, .at = AT(minutes), 1, 525600, "the sandbox ends after so long without use" },
    { "auto_cleanup", FORM_BOOL, .at = AT(cleanup), .help = "end it after the session, rather than pause it", .fallback = "true",
      .unlisted = true },
    { "working_directory", FORM_CONTENT, .at = AT(workdir), .most = 1023, .help = "absolute path where relative ones begin" },
    { "default", FORM_BOOL, .at = AT(as_default),
      .help = "use this sandbox for calls without a sandbox_id from now on; the one that was used ends", .fallback = "false" },
};
/* clang-format on */
#undef AT
const struct form tools_config_form = FORM_OF(config_rows);

int tools_config_read(struct exchange *x, json_t *object, struct tools_config *ret,
                      bool *ret_default, struct err *err)
{
    struct config_wish w = { .preset = NULL };
    json_t *own = NULL;
    int r = 0;

    if (form_read(exchange_caller(x), object, &tools_config_form, &w, err) < 0)
        return -1;
    *ret_default = w.as_default;
    if (tools_config_preset(exchange_app(x), ret, w.preset, err) < 0)
        return exchange_blame(x, "preset", NULL, NULL);
    if (json_object_get(object, "preset") || w.security) { /* the preset's rules, and more */
        own = w.security ? json_copy(w.security) : json_object();
        if (!json_object_get(own, "preset"))
            (void) json_object_set_new(own, "preset", json_string(ret->preset));
        r = read_security(x, own, w.security != NULL, ret, err);
        json_decref(own);
    }
    if (r < 0 || (w.limits && read_limits(x, w.limits, ret, err) < 0) ||
        (w.network && read_network(x, w.network, ret, err) < 0) ||
        (w.workdir && read_workdir(x, w.workdir, ret, err) < 0))
        return -1;
    (void) snprintf(ret->template, sizeof ret->template, "%s",
                    w.template       ? w.template
                    : w.e2b_template ? w.e2b_template
                                     : "");
    ret->or_default = !w.template && w.e2b_template && strcmp(w.e2b_template, "base") == 0;
    (void) snprintf(ret->isolation, sizeof ret->isolation, "%s", w.isolation ? w.isolation : "");
    ret->auto_cleanup = w.cleanup;
    if (w.minutes > 0)
        ret->session_ms = w.minutes * 60000;
    return 0;
}

json_t *tools_config_json(const struct tools_config *config)
{
    json_t *json = json_pack(
        "{s:s, s:{s:f, s:I, s:I, s:I, s:I}, s:{s:b, s:o}, s:I, s:b, s:s*}", "preset",
        config->preset, "resource_limits", "cpu_cores", (double) config->limits.cpu_milli / 1000,
        "memory_mb", (json_int_t) (config->limits.memory_bytes / MEGA), "disk_mb",
        (json_int_t) (config->limits.disk_bytes / MEGA), "timeout_seconds",
        (json_int_t) (config->timeout_ms / 1000), "max_processes",
        (json_int_t) config->limits.processes, "network", "enabled", config->network,
        "allowed_domains", config->domains[0] ? json_loads(config->domains, 0, NULL) : json_array(),
        "session_timeout_minutes", (json_int_t) (config->session_ms / 60000), "auto_cleanup",
        config->auto_cleanup, "working_directory", config->workdir[0] ? config->workdir : NULL);

    if (json && config->security[0])
        (void) json_object_set_new(json, "security", json_loads(config->security, 0, NULL));
    return json;
}
