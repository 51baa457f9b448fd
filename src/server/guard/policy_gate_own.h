/* policy_gate_own.h - the inside of the gate, for policy_gate.c and policy_routes.c. */
#ifndef COVE_SERVER_GUARD_POLICY_GATE_OWN_H
#define COVE_SERVER_GUARD_POLICY_GATE_OWN_H

#include "server/guard/policy_gate.h"
#include "store/store.h"

#define GATE_BOXES   1024
#define GATE_SEEN    256 /* violations that are kept for one tenant */
#define GATE_COMMAND 200

struct gate_rules {
    size_t refs; /* under the gate's lock */
    struct policy policy;
};

struct gate_box {
    char sandbox[ID_LEN + 1]; /* "": empty */
    struct gate_rules *rules; /* NULL: it has none of its own */
};

/* One violation that was seen; texts without a length are static. */
struct gate_seen {
    uint64_t time_ms;
    char sandbox[ID_LEN + 1];
    const char *rule, *description;
    enum policy_risk risk;
    bool refused;
    char command[GATE_COMMAND]; /* as it would run, cut */
};

/* Each has a ring of its own: a tenant that breaks rules all day pushes out no other tenant's entries. */
struct gate_tenant {
    char name[64];
    struct gate_counts counts;
    struct gate_seen *seen; /* GATE_SEEN of them; NULL until there is a first */
    uint64_t seen_count;    /* the next goes to seen[seen_count % GATE_SEEN] */
    struct gate_tenant *next;
};

struct policy_gate {
    pthread_mutex_t lock; /* all of it but the insides of policies, which never change */
    struct gate_rules *tenant_policy, *e2b_policy;
    struct gate_rules *tenant_root; /* of the tenant's, those whose root may be used */
    struct gate_box boxes[GATE_BOXES];
    struct gate_tenant *tenants;
};

/* Lock held; NULL: nothing was ever asked for it, or there is no memory. */
struct gate_tenant *gate_tenant_find(struct policy_gate *gate, const char *name);

/* A text of a sandbox's metadata as the store has it; NULL: not there. */
const char *gate_metadata(json_t *stored, const char *key);

#endif
