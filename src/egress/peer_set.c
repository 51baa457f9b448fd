/* The networks of tenants as the gateway knows them. A change puts a whole new set in the place of a tenant's old one: it
 * is made without the lock, and what is done under it is a search for every sandbox that has a gateway, whatever the
 * size of the set. */
#include "egress/egress_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_free(struct peer_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; set->nets && i < set->net_count; i++)
        free(set->nets[i].members);
    free(set->nets);
    free(set->links);
    free(set);
}

static int by_sandbox(const void *a, const void *b)
{
    const struct egress_member *x = ((const struct peer_link *) a)->self;
    const struct egress_member *y = ((const struct peer_link *) b)->self;
    int order = strcmp(x->sandbox, y->sandbox);

    return order != 0 ? order : (x->seq > y->seq) - (x->seq < y->seq);
}

static struct peer_set *set_new(const char *tenant, const struct egress_net *nets, size_t count)
{
    struct peer_set *set = calloc(1, sizeof *set);
    size_t members = 0;

    for (size_t i = 0; i < count; i++)
        members += nets[i].count;
    if (!set || !(set->nets = calloc(count + 1, sizeof *set->nets)) ||
        !(set->links = calloc(members + 1, sizeof *set->links)))
        goto bad;
    (void) snprintf(set->tenant, sizeof set->tenant, "%s", tenant);
    set->net_count = count;
    for (size_t i = 0; i < count; i++) {
        struct egress_net *net = &set->nets[i];

        *net = nets[i];
        net->members = calloc(net->count + 1, sizeof *net->members);
        if (!net->members)
            goto bad;
        memcpy(net->members, nets[i].members, net->count * sizeof *net->members);
        for (size_t m = 0; m < net->count; m++)
            set->links[set->link_count++] = (struct peer_link){ net, &net->members[m], false };
    }
    qsort(set->links, set->link_count, sizeof set->links[0], by_sandbox);
    return set;

bad:
    set_free(set);
    return NULL;
}

/* ---- sandboxes ---- */

/* Whether the box is in it; then it knows its networks. */
static bool attach(struct peer_set *set, struct box *box)
{
    size_t low = 0, high = set->link_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(set->links[middle].self->sandbox, box->id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (high < set->link_count && strcmp(set->links[high].self->sandbox, box->id) == 0)
        high++;
    if (low == high)
        return false;
    box->peers = set;
    box->links = &set->links[low];
    box->link_count = high - low;
    for (size_t i = 0; i < box->link_count; i++)
        box->links[i].here = true;
    return true;
}

void peer_box_new(struct egress *e, struct box *box)
{
    for (struct peer_set *set = e->peer_sets; set; set = set->next)
        if (attach(set, box))
            return;
}

static void detach(struct box *box)
{
    for (size_t i = 0; i < box->link_count; i++)
        box->links[i].here = false;
    box->peers = NULL;
    box->links = NULL;
    box->link_count = 0;
}

static void cut(struct egress *e, struct flow *flow, const char *why)
{
    (void) snprintf(flow->reason, sizeof flow->reason, "%s", why);
    if (flow->state == FLOW_RELAY)
        flow_tell(e, flow, EGRESS_CONNECT);
    flow_end(e, flow, true);
}

void peer_box_end(struct egress *e, struct box *box)
{
    for (struct box *other = e->boxes; other && box->guests > 0; other = other->next)
        for (struct flow *flow = other->flows, *next; flow; flow = next) {
            next = flow->next;
            if (flow->far == box)
                cut(e, flow, "the other sandbox has ended");
        }
    detach(box);
}

/* ---- changes ---- */

/* A connection that is or is being made: are the two still together, and the port open? */
static bool still_may(const struct flow *flow)
{
    for (size_t i = 0; i < flow->box->link_count; i++) {
        const struct egress_net *net = flow->box->links[i].net;

        for (size_t m = 0; m < net->count; m++) {
            const struct egress_member *member = &net->members[m];

            if (!ip_same(&member->ip, &flow->ip) || strcmp(member->sandbox, flow->far->id) != 0)
                continue;
            for (size_t p = 0; p < member->port_count; p++)
                if (member->ports[p] == flow->port)
                    return true;
        }
    }
    return false;
}

static void judge_again(struct egress *e, struct box *box)
{
    for (struct flow *flow = box->flows, *next; flow; flow = next) {
        next = flow->next;
        if (flow->far && !still_may(flow))
            cut(e, flow, "no longer open to it");
    }
}

int egress_nets_set(struct egress *e, const char *tenant, const struct egress_net *nets,
                    size_t count, struct err *err)
{
    struct peer_set *set = set_new(tenant, nets, count), *old, **at;

    if (!set)
        return err_set(err, ERR_NO_MEMORY, "no memory for networks");
    (void) pthread_mutex_lock(&e->lock);
    for (at = &e->peer_sets; *at && strcmp((*at)->tenant, tenant) != 0; at = &(*at)->next)
        ;
    old = *at;
    if (set->link_count > 0) {
        set->next = old ? old->next : NULL;
        *at = set;
    } else if (old) {
        *at = old->next;
    }
    for (struct box *box = e->boxes; box; box = box->next) {
        bool had = old && box->peers == old;

        if (had)
            detach(box);
        if (attach(set, box) || had)
            judge_again(e, box);
    }
    (void) pthread_mutex_unlock(&e->lock);
    set_free(old);
    if (set->link_count == 0)
        set_free(set);
    return 0;
}

int egress_nets_without(struct egress *e, const char *tenant, char (**ret)[EGRESS_ID_MAX],
                        size_t *ret_count, struct err *err)
{
    char(*out)[EGRESS_ID_MAX];
    size_t count = 0, most = 1;

    (void) pthread_mutex_lock(&e->lock);
    for (const struct peer_set *set = e->peer_sets; set; set = set->next)
        most += set->link_count;
    out = calloc(most, sizeof *out);
    for (const struct peer_set *set = e->peer_sets; set && out; set = set->next) {
        if (tenant && strcmp(set->tenant, tenant) != 0)
            continue;
        for (size_t i = 0; i < set->link_count; i++) {
            const char *id = set->links[i].self->sandbox;

            if (!set->links[i].here && (count == 0 || strcmp(out[count - 1], id) != 0))
                (void) snprintf(out[count++], EGRESS_ID_MAX, "%s", id);
        }
    }
    (void) pthread_mutex_unlock(&e->lock);
    if (!out)
        return err_set(err, ERR_NO_MEMORY, "no memory for networks");
    *ret = out;
    *ret_count = count;
    return 0;
}

void peer_sets_free(struct egress *e)
{
    while (e->peer_sets) {
        struct peer_set *next = e->peer_sets->next;

        set_free(e->peer_sets);
        e->peer_sets = next;
    }
}
