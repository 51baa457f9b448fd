#include "cli/api/show.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MOST 18446744073709549568.0 /* the largest double that is a uint64_t */

const char *show_text(json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    return text ? text : "";
}

uint64_t show_number(json_t *json, const char *name)
{
    double value = json_number_value(json_object_get(json, name));

    return value > 0 && value < MOST ? (uint64_t) value : 0;
}

int show_id(json_t *json, const char *name, struct err *err)
{
    const char *id = show_text(json, name);

    if (!id[0] || id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789")])
        return err_set(err, ERR_PROTOCOL, "the server's answer has no id");
    printf("%s\n", id);
    return 0;
}

uint64_t show_time(json_t *json, const char *name)
{
    struct tm tm = { 0 };
    unsigned ms = 0;

    if (sscanf(show_text(json, name), "%d-%d-%dT%d:%d:%d.%3uZ", &tm.tm_year, &tm.tm_mon,
               &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms) < 6)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    return (uint64_t) timegm(&tm) * 1000 + ms;
}

uint64_t show_age(uint64_t since_ms)
{
    struct timespec now;
    uint64_t ms;

    (void) clock_gettime(CLOCK_REALTIME, &now);
    ms = (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
    return ms > since_ms ? ms - since_ms : 0;
}

void show_list(json_t *take_list, bool as_json, size_t columns, const char *const *headings,
               show_row *row)
{
    struct table table;
    json_t *item;
    size_t i;

    if (as_json) {
        show_json(take_list);
        return;
    }
    table_init(&table, columns, headings);
    json_array_foreach(take_list, i, item)
    {
        row(&table, item);
    }
    (void) table_print(&table, stdout);
    table_done(&table);
    json_decref(take_list);
}

void show_json(json_t *take_json)
{
    (void) json_dumpf(take_json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    (void) fputc('\n', stdout);
    json_decref(take_json);
}
