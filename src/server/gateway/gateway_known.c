#include "server/gateway/gateway_known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 1024

struct entry {
    char sandbox[EGRESS_ID_MAX];
    struct entry *next;
};

struct known {
    struct entry *places[PLACES]; /* by a hash of the id */
    struct known_tenant *tenants;
};

struct known *known_new(void)
{
    return calloc(1, sizeof(struct known));
}

/* ---- sandboxes ---- */

/* The pointer that leads to it, or to NULL. */
static struct entry **find(const struct known *k, const char *sandbox)
{
    struct entry *const *at;
    unsigned hash = 0;

    for (const char *c = sandbox; *c; c++)
        hash = hash * 31 + (unsigned char) *c;
    at = &k->places[hash % PLACES];
    while (*at && strcmp((*at)->sandbox, sandbox) != 0)
        at = &(*at)->next;
    return (struct entry **) (uintptr_t) at;
}

bool known_has(const struct known *k, const char *sandbox)
{
    return *find(k, sandbox) != NULL;
}

bool known_add(struct known *k, const char *sandbox)
{
    struct entry **at = find(k, sandbox);

    if (*at)
        return true;
    *at = calloc(1, sizeof **at);
    if (!*at)
        return false;
    (void) snprintf((*at)->sandbox, sizeof(*at)->sandbox, "%s", sandbox);
    return true;
}

void known_remove(struct known *k, const char *sandbox)
{
    struct entry **at = find(k, sandbox), *entry = *at;

    if (!entry)
        return;
    *at = entry->next;
    free(entry);
}

void known_clear(struct known *k)
{
    for (size_t i = 0; i < PLACES; i++)
        while (k->places[i]) {
            struct entry *next = k->places[i]->next;

            free(k->places[i]);
            k->places[i] = next;
        }
}

/* ---- private networks ---- */

static void tenant_free(struct known_tenant *tenant)
{
    if (!tenant)
        return;
    for (size_t i = 0; tenant->nets && i < tenant->count; i++)
        free(tenant->nets[i].members);
    free(tenant->nets);
    free(tenant);
}

void known_free(struct known *k)
{
    if (!k)
        return;
    known_clear(k);
    while (k->tenants) {
        struct known_tenant *next = k->tenants->next;

        tenant_free(k->tenants);
        k->tenants = next;
    }
    free(k);
}

static struct known_tenant *tenant_new(const char *name, const struct egress_net *nets,
                                       size_t count)
{
    struct known_tenant *tenant = calloc(1, sizeof *tenant);

    if (!tenant || !(tenant->nets = calloc(count + 1, sizeof *nets)))
        goto bad;
    (void) snprintf(tenant->name, sizeof tenant->name, "%s", name);
    for (size_t i = 0; i < count; i++, tenant->count++) {
        tenant->nets[i] = nets[i];
        tenant->nets[i].members = calloc(nets[i].count + 1, sizeof *nets[i].members);
        if (!tenant->nets[i].members)
            goto bad;
        if (nets[i].count)
            memcpy(tenant->nets[i].members, nets[i].members,
                   nets[i].count * sizeof *nets[i].members);
    }
    return tenant;

bad:
    tenant_free(tenant);
    return NULL;
}

int known_nets_set(struct known *k, const char *name, const struct egress_net *nets, size_t count,
                   struct err *err)
{
    struct known_tenant *tenant = count ? tenant_new(name, nets, count) : NULL, **at, *old;

    if (count && !tenant)
        return err_set(err, ERR_NO_MEMORY, "no memory for networks");
    for (at = &k->tenants; *at && strcmp((*at)->name, name) != 0; at = &(*at)->next)
        ;
    old = *at;
    if (tenant)
        tenant->next = old ? old->next : NULL;
    if (tenant || old)
        *at = tenant ? tenant : old->next;
    tenant_free(old);
    return 0;
}

const struct known_tenant *known_tenants(const struct known *k)
{
    return k->tenants;
}

static const struct egress_member *member_of(const struct egress_net *net, const char *sandbox)
{
    for (size_t i = 0; i < net->count; i++)
        if (strcmp(net->members[i].sandbox, sandbox) == 0)
            return &net->members[i];
    return NULL;
}

bool known_nets_allow(const struct known *k, struct egress_dial *dial)
{
    if (!known_has(k, dial->from))
        return false;
    for (const struct known_tenant *t = k->tenants; t; t = t->next)
        for (size_t i = 0; i < t->count; i++) {
            const struct egress_member *to = member_of(&t->nets[i], dial->to);

            if (to && egress_member_has(to, dial->port) && member_of(&t->nets[i], dial->from)) {
                (void) strcpy(dial->tenant, t->name);
                return true;
            }
        }
    return false;
}

bool known_nets_member(const struct known *k, const char *sandbox)
{
    for (const struct known_tenant *t = k->tenants; t; t = t->next)
        for (size_t i = 0; i < t->count; i++)
            if (member_of(&t->nets[i], sandbox))
                return true;
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static size_t unique(char (*ids)[EGRESS_ID_MAX], size_t count)
{
    size_t kept = 0;

    qsort(ids, count, sizeof ids[0], by_text);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(ids[kept - 1], ids[i]) != 0)
            memmove(ids[kept++], ids[i], sizeof ids[i]);
    return kept;
}

int known_nets_without(const struct known *k, const char *tenant, char (**ret)[EGRESS_ID_MAX],
                       size_t *ret_count, struct err *err)
{
    char(*out)[EGRESS_ID_MAX];
    size_t count = 0, most = 1;

    for (const struct known_tenant *t = k->tenants; t; t = t->next)
        for (size_t i = 0; i < t->count; i++)
            most += t->nets[i].count;
    out = calloc(most, sizeof *out);
    if (!out)
        return err_set(err, ERR_NO_MEMORY, "no memory for networks");
    for (const struct known_tenant *t = k->tenants; t; t = t->next)
        for (size_t i = 0; (!tenant || strcmp(t->name, tenant) == 0) && i < t->count; i++)
            for (size_t m = 0; m < t->nets[i].count; m++)
                if (!known_has(k, t->nets[i].members[m].sandbox))
                    (void) strcpy(out[count++], t->nets[i].members[m].sandbox);
    *ret_count = unique(out, count);
    *ret = out;
    return 0;
}
