/* Private networks as the gateway has them, without any sandbox. */
#include "egress/egress.h"

#include "check.h"

#include <stdlib.h>

#define MEMBERS 150

static void on_event(void *context, const struct egress_event *event)
{
    (void) context;
    (void) event;
}

/* Those that sleep never get a gateway: they must not stand before those that wait for one. */
static void all_members_without_a_gateway_are_named(void)
{
    static struct egress_member members[2][MEMBERS];
    struct egress_net nets[2] = { { .name = "a", .members = members[0], .count = MEMBERS },
                                  { .name = "b", .members = members[1], .count = MEMBERS } };
    struct egress_config config = { .event = on_event };
    char(*ids)[EGRESS_ID_MAX] = NULL;
    struct egress *egress = NULL;
    size_t count = 0;
    struct err err;

    for (size_t n = 0; n < 2; n++)
        for (size_t i = 0; i < MEMBERS; i++) {
            (void) snprintf(members[n][i].sandbox, sizeof members[n][i].sandbox, "i%zu", i);
            (void) snprintf(members[n][i].alias, sizeof members[n][i].alias, "m%zu", i);
        }
    CHECK(egress_start(&config, &egress, &err) == 0);
    CHECK(egress_nets_set(egress, "one", nets, 2, &err) == 0);
    CHECK(egress_nets_set(egress, "two", nets, 1, &err) == 0);
    CHECK(egress_nets_without(egress, "one", &ids, &count, &err) == 0);
    CHECK_INT(count, MEMBERS); /* each once, also who is in both */
    free(ids);
    CHECK(egress_nets_without(egress, NULL, &ids, &count, &err) == 0);
    CHECK_INT(count, 2 * MEMBERS);
    free(ids);
    CHECK(egress_nets_without(egress, "three", &ids, &count, &err) == 0);
    CHECK_INT(count, 0);
    free(ids);
    egress_stop(egress);
}

CHECK_MAIN(T(all_members_without_a_gateway_are_named))
