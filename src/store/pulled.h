/* pulled.h - images that tenants pulled or imported: each is a template on the host, under a name that only its row leads to.
 *
 * Callers: server/ops/ops_pull.c; server/life/upkeep.c counts their bytes. */
#ifndef COVE_STORE_PULLED_H
#define COVE_STORE_PULLED_H

#include "store/store.h"

#define STORE_PULLED_MAX 100 /* of one tenant */

struct store_pulled {
    char name[STORE_NAME_MAX]; /* of the template on the host */
    char tenant[STORE_TENANT_MAX];
    char digest[80];  /* of the manifest; "": of an archive, or it is being made */
    char source[512]; /* an image's name, or what an archive was called */
    uint64_t bytes;   /* 0: it is being made */
    uint64_t created_ms;
};

/* Before it is made. ERR_TOO_MANY. */
int store_pulled_add(struct store *store, const struct store_pulled *pulled, struct err *err);
/* It is made. ERR_STATE: its tenant is gone. */
int store_pulled_done(struct store *store, const struct store_pulled *pulled, struct err *err);
int store_pulled_remove(struct store *store, const char *name, struct err *err);
typedef int store_pulled_each(void *arg, const struct store_pulled *pulled, struct err *err);
/* Newest first; tenant "": of all. */
int store_pulled_list(struct store *store, const char *tenant, store_pulled_each *each, void *arg,
                      struct err *err);
/* The same of those that no snapshot stands on. A sandbox may: the keeper knows. */
int store_pulled_idle(struct store *store, const char *tenant, store_pulled_each *each, void *arg,
                      struct err *err);
/* Of all that a tenant has. */
int store_pulled_bytes(struct store *store, const char *tenant, uint64_t *ret, struct err *err);

#endif
