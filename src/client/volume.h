/* volume.h - volumes, as asked of the keeper, who knows them by their ids.
 *
 * Callers: the command line, the API's operations. Names and tenants are in the store. */
#ifndef COVE_CLIENT_VOLUME_H
#define COVE_CLIENT_VOLUME_H

#include "client/link.h"

/* 'v', four characters that name this machine, sixteen random ones. */
int volume_new_id(char out[VOLUME_ID_MAX], struct err *err);

/* Whole MiB that hold so many bytes. */
uint64_t volume_round(uint64_t bytes);

int volume_make(struct link *link, const char *volume, uint64_t bytes, uint64_t inodes,
                struct err *err);
int volume_drop(struct link *link, const char *volume, struct err *err);
/* One, or with NULL all of them; in an array for the caller to free. */
int volume_list(struct link *link, const char *volume, struct volume_info **ret, size_t *ret_count,
                struct err *err);
int volume_users(struct link *link, const char *volume, struct volume_user **ret, size_t *ret_count,
                 struct err *err);

#endif
