/* One sandbox after the other is made until there are enough; then some more are made, asked and removed at once. The
 * second look beside few tells a machine that became slower from a create that grew. */
#include "growth.h"

#include "base/io.h"
#include "base/own.h"
#include "launch.h"
#include "report.h"
#include "series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum moment { FEW, MANY, FEW_AGAIN, MOMENTS };

struct growth {
    struct lane lane;
    struct limits limits;
    char (*ids)[ID_LEN + 1];
    size_t alive;
    struct series create[MOMENTS], exec[MOMENTS];
};

static int grow_to(struct growth *g, size_t count, struct err *err)
{
    struct keeper_sandbox made;

    while (g->alive < count) {
        if (lane_create(&g->lane, &g->limits, &made, err) < 0)
            return err_wrap(err, "beside %zu", g->alive);
        (void) snprintf(g->ids[g->alive++], sizeof g->ids[0], "%s", made.id);
    }
    return 0;
}

static int shrink_to(struct growth *g, size_t count, struct err *err)
{
    int rc = 0;

    while (g->alive > count)
        if (lane_destroy(&g->lane, g->ids[--g->alive], err) < 0)
            rc = -1;
    return rc;
}

static int measure(struct growth *g, enum moment moment, unsigned rounds, struct err *err)
{
    for (unsigned i = 0; i < rounds; i++) {
        struct keeper_sandbox made;
        uint64_t begin, ready;

        launch_settle();
        begin = io_now_us();
        if (lane_create(&g->lane, &g->limits, &made, err) < 0)
            return -1;
        ready = io_now_us();
        series_add(&g->create[moment], ready - begin);
        if (lane_true(&g->lane, made.id, err) < 0)
            return -1;
        series_add(&g->exec[moment], io_now_us() - ready);
        if (lane_destroy(&g->lane, made.id, err) < 0)
            return -1;
    }
    return 0;
}

static int look(struct growth *g, size_t many, unsigned rounds, struct err *err)
{
    size_t few = many < GROWTH_FEW ? many / 2 : GROWTH_FEW;
    static const enum moment order[] = { FEW, MANY, FEW_AGAIN };

    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        size_t count = order[i] == MANY ? many : few;

        if (grow_to(g, count, err) < 0 || shrink_to(g, count, err) < 0 ||
            measure(g, order[i], rounds, err) < 0)
            return -1;
    }
    return 0;
}

/* Of the two looks beside few, the slower. */
static uint64_t base(struct series *series, double percent)
{
    uint64_t before = series_at(&series[FEW], percent),
             after = series_at(&series[FEW_AGAIN], percent);

    return before > after ? before : after;
}

static void report(struct growth *g, size_t many)
{
    static const char *const names[] = {
        [FEW] = "few", [MANY] = "many", [FEW_AGAIN] = "few again"
    };
    char label[60];
    double ratio = 0, least = 0;

    report_section("A create beside few and beside many");
    (void) snprintf(label, sizeof label, "few: %d alive, many: %zu", GROWTH_FEW, many);
    report_series_head(label);
    for (int i = 0; i < MOMENTS; i++) {
        (void) snprintf(label, sizeof label, "create, %s", names[i]);
        report_series(label, &g->create[i], series_at(&g->create[FEW], 50), NULL);
    }
    for (int i = 0; i < MOMENTS; i++) {
        (void) snprintf(label, sizeof label, "exec of `true`, %s", names[i]);
        report_series(label, &g->exec[i], series_at(&g->exec[FEW], 50), NULL);
    }
    ratio = (double) series_at(&g->create[MANY], 50) / (double) base(g->create, 50);
    least = (double) series_at(&g->create[MANY], 0) / (double) base(g->create, 0);
    report_target(ratio <= 1.3, "create beside %zu / beside %d: %.2f (<= 1.3); of the minima %.2f",
                  many, GROWTH_FEW, ratio, least);
}

int growth_run(struct rig *rig, size_t many, unsigned rounds, bool quiet, struct err *err)
{
    struct growth g = { .alive = 0 };
    struct err ignored;
    int rc;

    limits_default(&g.limits);
    g.ids = calloc(many, sizeof *g.ids);
    if (!g.ids)
        return err_sys(err, ENOMEM, "beside %zu", many);
    rc = lane_open(&g.lane, rig, err);
    if (rc == 0) {
        rc = look(&g, many, rounds, err);
        if (shrink_to(&g, 0, rc == 0 ? err : &ignored) < 0)
            rc = -1;
        lane_close(&g.lane);
    }
    if (rc == 0 && !quiet)
        report(&g, many);
    for (int i = 0; i < MOMENTS; i++) {
        series_done(&g.create[i]);
        series_done(&g.exec[i]);
    }
    free(g.ids);
    return rc;
}
