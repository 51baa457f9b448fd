#include "cli/template_network.h"

#include "base/own.h"
#include "cli/report.h"
#include "cli/substore.h"
#include "cli/subverbs.h"

#include <stdio.h>
#include <unistd.h>

static bool has_store(void)
{
    char path[4096];

    (void) snprintf(path, sizeof path, "%.3800s/server/cove.db", report_state());
    return access(path, F_OK) == 0;
}

static int set(const char *name, const struct network_default *what, const char *detail,
               struct err *err)
{
    struct store *store = NULL;
    int r = subverb_store(&store, err) < 0 ||
                    network_default_store(store, STORE_NETWORK_TEMPLATE, name, what, err) < 0 ||
                    subverb_audit(store, "", "template.network", detail, err) < 0
                ? -1
                : 0;

    store_close(store);
    return r;
}

int template_network_set(const char *name, const struct network_values *values, struct err *err)
{
    struct network_default what;
    char detail[120];
    int r;

    if (network_values_read(values, &what, err) < 0)
        return -1;
    if (!what.given)
        return err_set(err, ERR_USAGE,
                       "template set: say --network (see 'cove template set --help')");
    (void) snprintf(detail, sizeof detail, "%.63s: %.40s", name, values->mode);
    r = set(name, &what, detail, err);
    network_default_done(&what);
    return r;
}

int template_network_forget(const char *name, struct err *err)
{
    auto_free char *rules = template_network_get(name);
    struct network_default none = { .given = true };
    char detail[120];

    (void) snprintf(detail, sizeof detail, "%.63s: none", name);
    return rules ? set(name, &none, detail, err) : 0;
}

char *template_network_get(const char *name)
{
    struct store *store = NULL;
    char *rules = NULL;
    struct err ignored;

    if (has_store() && subverb_store(&store, &ignored) == 0)
        (void) store_network_default_get(store, STORE_NETWORK_TEMPLATE, name, &rules, NULL,
                                         &ignored);
    store_close(store);
    return rules;
}
