/* Logins of proxies: sealed as secrets are, each for the place it belongs to. db_sql.c has the same words, for logins that
 * older versions kept in the open. */
#include "store/own.h"

#include <stdio.h>
#include <string.h>

int store_login_seal(struct store *store, const char *proxy, const char *login, char **ret,
                     struct err *err)
{
    char about[STORE_ABOUT_MAX];

    (void) snprintf(about, sizeof about, "proxy/%s", proxy);
    return store_seal(store, about, login, strlen(login), ret, err);
}

int store_login_open(struct store *store, const char *proxy, const char *sealed, char **ret,
                     size_t *ret_len, struct err *err)
{
    char about[STORE_ABOUT_MAX];

    (void) snprintf(about, sizeof about, "proxy/%s", proxy);
    return store_unseal(store, about, sealed, ret, ret_len, err);
}
