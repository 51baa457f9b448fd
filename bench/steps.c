#include "steps.h"

#include "base/own.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 48

struct step {
    char name[32];
    struct series series;
};

struct steps {
    const char *event;
    size_t count;
    struct step steps[STEPS_MAX];
};

static void add(struct steps *steps, const char *name, size_t len, uint64_t us)
{
    size_t i = 0;

    while (i < steps->count &&
           (strncmp(steps->steps[i].name, name, len) != 0 || steps->steps[i].name[len]))
        i++;
    if (i == STEPS_MAX || len >= sizeof steps->steps[0].name)
        return;
    if (i == steps->count) {
        memcpy(steps->steps[i].name, name, len);
        steps->count++;
    }
    series_add(&steps->steps[i].series, us);
}

/* Every us_NAME=NUMBER of the line. */
static void take_line(struct steps *steps, const char *line)
{
    for (const char *at = line; (at = strstr(at, " us_"));) {
        const char *name = at + 4, *equals = strchr(name, '=');

        if (!equals)
            return;
        add(steps, name, (size_t) (equals - name), strtoull(equals + 1, NULL, 10));
        at = equals;
    }
}

static void print(struct steps *steps)
{
    uint64_t total = 0;
    char title[64];

    for (size_t i = 0; i < steps->count; i++)
        if (strcmp(steps->steps[i].name, "total") == 0)
            total = series_at(&steps->steps[i].series, 50);
    (void) snprintf(title, sizeof title, "%s in the keeper (ratio: share of the total)",
                    steps->event);
    report_series_head(title);
    for (size_t i = 0; i < steps->count; i++)
        report_series(steps->steps[i].name, &steps->steps[i].series, total, NULL);
}

static void report(int log_fd, const char *title, struct steps *kinds, size_t kind_count)
{
    auto_file FILE *file = NULL;
    char path[64], line[2048], word[40];

    (void) snprintf(path, sizeof path, "/proc/self/fd/%d", log_fd);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < kind_count; i++) {
            (void) snprintf(word, sizeof word, " %s ", kinds[i].event);
            if (strstr(line, word))
                take_line(&kinds[i], line);
        }
    if (!kinds[0].count)
        return;
    report_section(title);
    for (size_t i = 0; i < kind_count; i++)
        if (kinds[i].count)
            print(&kinds[i]);
    for (size_t i = 0; i < kind_count; i++)
        for (size_t k = 0; k < kinds[i].count; k++)
            series_done(&kinds[i].steps[k].series);
}

void steps_report(int log_fd)
{
    static struct steps kinds[] = { { .event = "create" }, { .event = "destroy" } };

    report(log_fd, "4. where the time goes", kinds, ARRAY_LEN(kinds));
}

void steps_report_loads(int log_fd)
{
    static struct steps kinds[] = { { .event = "load" } };

    report(log_fd, "8. where the time of a resume goes", kinds, ARRAY_LEN(kinds));
}
