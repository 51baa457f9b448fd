#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TARGETS_MAX 32
#define LABEL_WIDTH 44

static struct {
    bool met;
    char text[160];
} targets[TARGETS_MAX];
static size_t target_count;

void report_section(const char *title)
{
    printf("\n%s\n", title);
    for (const char *c = title; *c; c++)
        (void) putchar('=');
    (void) putchar('\n');
    (void) fflush(stdout);
}

void report_series_head(const char *title)
{
    printf("\n%-*s %6s %9s %9s %9s %8s\n", LABEL_WIDTH, title, "n", "min ms", "p50 ms", "p99 ms",
           "ratio");
}

void report_series(const char *label, struct series *series, uint64_t base_p50, const char *note)
{
    uint64_t p50 = series_at(series, 50);

    printf("  %-*s %6zu", LABEL_WIDTH - 2, label, series->count);
    if (series->count)
        printf(" %9.2f %9.2f %9.2f", (double) series_at(series, 0) / 1e3, (double) p50 / 1e3,
               (double) series_at(series, 99) / 1e3);
    else
        printf(" %9s %9s %9s", "-", "-", "-");
    if (series->count && base_p50)
        printf(" %7.2fx", (double) p50 / (double) base_p50);
    else
        printf(" %8s", "-");
    printf("%s%s\n", note ? "  " : "", note ? note : "");
    (void) fflush(stdout);
}

void report_fact(const char *label, const char *fmt, ...)
{
    va_list args;

    printf("  %-*s ", LABEL_WIDTH - 2, label);
    va_start(args, fmt);
    (void) vprintf(fmt, args);
    va_end(args);
    (void) putchar('\n');
    (void) fflush(stdout);
}

void report_target(bool met, const char *fmt, ...)
{
    char text[sizeof targets[0].text];
    va_list args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    printf("  target %s: %s\n", met ? "met   " : "MISSED", text);
    (void) fflush(stdout);
    if (target_count == TARGETS_MAX)
        return;
    targets[target_count].met = met;
    (void) snprintf(targets[target_count++].text, sizeof text, "%s", text);
}

void report_verdicts(void)
{
    size_t met = 0;

    for (size_t i = 0; i < target_count; i++)
        met += targets[i].met;
    report_section("Targets");
    for (size_t i = 0; i < target_count; i++)
        printf("  %s  %s\n", targets[i].met ? "met   " : "MISSED", targets[i].text);
    printf("  %zu of %zu met\n", met, target_count);
}
