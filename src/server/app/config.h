/* config.h - coved's settings: one table drives the file, the flags, the environment and the docs.
 *
 * A setting `listen` is `listen = 127.0.0.1:8000` in the file, `--listen` as a flag and COVE_LISTEN in
 * the environment. Flags win over the environment, which wins over the file, which wins over the default. */
#ifndef COVE_SERVER_APP_CONFIG_H
#define COVE_SERVER_APP_CONFIG_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct config {
    char state[256];
    char listen[128];
    /* whose members may use <state>/cove.sock, besides root; "": no group's */
    char admin_group[64];
    char domain[128];
    char public_domain[128]; /* what clients are told; may have a port */
    char tls_listen[128];    /* "": TLS, if at all, is on listen */
    char tls_cert[256], tls_key[256];
    char policy[32];     /* the preset that tenants have */
    char isolation[16];  /* of a sandbox whose create says nothing */
    char e2b_policy[32]; /* and that of sandboxes made through E2B's dialect */
    /* requests of one user of a tenant in a window; 0: no limit */
    uint64_t user_requests, user_window_ms;
    /* percent of all processors that analyses of one tenant's commands may use */
    uint64_t policy_share;
    uint64_t threads;       /* requests at once */
    uint64_t connections;   /* open at once, idle ones included */
    uint64_t stalled;       /* clients that may stand still at once */
    uint64_t idle_ms;       /* a connection without a request */
    uint64_t head_ms;       /* a request head from first to last byte */
    uint64_t body_stall_ms; /* no byte of a body, or no room for one of an answer */
    uint64_t relay_idle_ms; /* no byte either way between a client and a port of a sandbox */
    uint64_t visitor_ms;    /* the same before an answer begins, for visitors without a token */
    uint64_t relay_most;    /* exchanges with the ports of one sandbox at once */
    uint64_t sandbox_timeout_ms, sandbox_timeout_most_ms; /* lifetime: default and greatest */
    /* what stays in memory when it is paused, and how long */
    uint64_t pause_hot_bytes, pause_disk_after_ms;
    uint64_t idle_pause_ms, idle_disk_ms; /* of sandboxes that do not say; 0: never */
    uint64_t image_compress_after_ms;     /* since anybody used them; 0: never */
    uint64_t snapshot_days, paused_days;  /* images are kept; 0: for ever */
    uint64_t audit_bytes;                 /* of the store, 0: no limit */
    uint64_t audit_days;                  /* 0: audit records are kept for ever */
    bool network;                         /* sandboxes may have egress */
    char gateway[256];     /* directory of the gateway's socket; "": coved starts one itself */
    char network_dns[160]; /* name servers for it; "": this host's */
    /* PEM of authorities that sandboxes trust, beside their template's; "": none */
    char sandbox_ca[256];
    char network_ca[256]; /* PEM of authorities for hosts of secrets; "": only those of this host */
    char network_ranges[512];       /* not public, and rules of tenants may name them */
    char network_proxy_ranges[512]; /* where proxies of tenants may be, besides public addresses */
    uint64_t network_connections, network_connects, network_bytes,
        network_idle_ms; /* each sandbox */
    uint64_t network_all_connections, network_all_lookups, network_all_handshakes; /* 0: no limit */
    bool registry;                        /* tenants may pull images */
    char registry_hosts[1024];            /* of the operator's own, at any address */
    char registry_mirrors[1024];          /* asked first */
    char registry_proxy[256];             /* HOST:PORT */
    uint64_t registry_timeout_ms;         /* of one image */
    uint64_t build_upload, build_uploads; /* bytes, of one and of all of a tenant */
    char pool[1024];                      /* rules of pool_rules.h */
    uint64_t pool_memory;                 /* for those that wait, in bytes */
    bool proxy_protocol;                  /* every connection begins with a PROXY preamble */
    char proxy_from[256];                 /* who may say so */
    bool local;                           /* loopback needs no key */
    bool verbose;
};

enum setting_type {
    SETTING_TEXT,
    SETTING_COUNT,
    SETTING_DURATION,
    SETTING_SIZE,
    SETTING_BOOL,
    SETTING_POOL,      /* text: rules of pool_rules.h */
    SETTING_PREFIXES,  /* text: a list of base/prefix.h */
    SETTING_RANGES,    /* text: the same, of addresses that tenants may name (egress/may_name.h) */
    SETTING_ISOLATION, /* text: a name of wire/isolation.h */
    SETTING_HOSTS,     /* text: a list of HOST[:PORT] or http[s]://HOST[:PORT] */
    SETTING_MIRRORS    /* text: a list of HOST[:PORT]=http[s]://HOST[:PORT] */
};

/* Whether SIGHUP changes it, or only a restart. */
enum setting_change { AT_START, LIVE };

struct setting {
    const char *name; /* with '_' in the file, '-' in flags */
    enum setting_type type;
    size_t offset, size;
    const char *fallback; /* the default, as a file has it */
    uint64_t least, most;
    enum setting_change change;
    const char *help;
};
extern const struct setting settings[];
extern const size_t setting_count;

/* All layers. *ret_check: --check-config was given. Exits by itself on --help, --version, --show-config, --sample-config
 * and --man. */
int config_load(struct config *config, int argc, char **argv, bool *ret_check, struct err *err);

/* The file that config_load reads. */
const char *config_path(int argc, char **argv);

/* Pure, after SIGHUP: `running` gets what is LIVE of `fresh`; what would need a restart stays as it is. Each setting
 * that differs is told. */
typedef void config_told(const struct setting *setting);
void config_adopt(struct config *running, const struct config *fresh, config_told *told);

/* Pure: one setting from text. */
int config_set(struct config *config, const char *name, const char *text, struct err *err);
/* Pure: the text of a configuration file; `text` is changed. */
int config_parse(struct config *config, char *text, struct err *err);

void config_help(FILE *out);
/* A configuration file in which every setting has its default, in comments; or the manual page of that file. */
void config_text(FILE *out, bool man);
/* All settings as they are, in the form of a configuration file. */
void config_show(const struct config *config, FILE *out);

#endif
