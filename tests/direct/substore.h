/* substore.h - the server's store, for the direct command line: written only while no server runs, which is the only writer otherwise.
 *
 * What the direct command line makes belongs to nobody: its owner is "". What belongs to a tenant of the server keeps its
 * tenant, as the store says, if there is one. The keeper lets root do both. */
#ifndef TESTS_DIRECT_SUBSTORE_H
#define TESTS_DIRECT_SUBSTORE_H

#include "cli/saved.h"
#include "cli/subverbs.h"
#include "store/store.h"

/* A server runs: the product's command line takes over, and this does not return. argv begins with the verb. */
void subverb_product(char **argv);

/* Of the state directory in force. */
int subverb_store(struct store **ret, struct err *err);
/* What the command line changed, in the audit log, on disk when it returns. */
int subverb_audit(struct store *store, const char *tenant, const char *action, const char *detail,
                  struct err *err);

/* Whose it is: the tenant of the server's record, or "". */
void saved_owner(const char *sandbox, char ret[KEEPER_NAME_MAX]);
/* A snapshot by id; or by name, if only one tenant of the server has one of that name. ERR_NO_IMAGE. */
int saved_snapshot(struct link *link, const char *snapshot, struct keeper_image *ret,
                   struct err *err);
/* A new sandbox of an image, as it was. */
int saved_load(struct link *link, const struct keeper_image *image, struct keeper_sandbox *ret,
               struct err *err);
/* As sandbox_create, of its template's memory image where that fits. */
int saved_warm_create(struct link *link, const struct sandbox_spec *spec,
                      struct keeper_sandbox *ret, struct err *err);

#endif
