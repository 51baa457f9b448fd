/* Lists of sandboxes: what a query asks for, and pages. */
#include "surface/e2b/control.h"

#include "base/own.h"
#include "http/url.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define PAGE_MOST 100

/* ---- metadata: encoded three times ----
 *
 * Keys and values are percent-encoded, put together as k=v&k2=v2, and that form is encoded, as a form is, before it
 * becomes the value of a query, which encodes it again. The first layer is gone when it comes here. */

/* In place: what is decoded is never longer. */
static int decode(char *text, size_t len, unsigned flags, struct err *err)
{
    auto_free char *copy = strndup(text, len);

    if (!copy)
        return err_set(err, ERR_NO_MEMORY, "no memory for the filter");
    return url_decode(slice_of(copy), flags, text, len + 1, err) < 0 ? -1 : 0;
}

static int read_pair(char *pair, struct ops_filter *filter, struct err *err)
{
    char *equal = strchr(pair, '=');
    char *value = equal ? equal + 1 : NULL;

    if (!equal || strchr(value, '=') || equal == pair)
        return err_set(err, ERR_INVALID, "metadata: '%.40s' is not one key and one value", pair);
    if (filter->meta_count == OPS_FILTER_META)
        return err_set(err, ERR_INVALID, "metadata: more than %d pairs", OPS_FILTER_META);
    *equal = '\0';
    if (decode(pair, strlen(pair), URL_PLUS | URL_UTF8, err) < 0 ||
        decode(value, strlen(value), URL_PLUS | URL_UTF8, err) < 0)
        return err_wrap(err, "metadata");
    filter->meta_keys[filter->meta_count] = pair;
    filter->meta_values[filter->meta_count++] = value;
    return 0;
}

int control_metadata(char *text, struct ops_filter *filter, struct err *err)
{
    char *save = NULL;

    if (decode(text, strlen(text), URL_PLUS | URL_UTF8, err) < 0)
        return err_wrap(err, "metadata");
    for (char *pair = strtok_r(text, "&", &save); pair; pair = strtok_r(NULL, "&", &save))
        if (read_pair(pair, filter, err) < 0)
            return -1;
    return 0;
}

/* ---- the rest of the query ---- */

void control_token_put(uint64_t cursor, bool oldest_first, char out[CONTROL_TOKEN_MAX])
{
    (void) snprintf(out, CONTROL_TOKEN_MAX, "%s%" PRIu64, oldest_first ? "asc-" : "desc-", cursor);
}

int control_token_get(const char *text, bool oldest_first, uint64_t *ret, struct err *err)
{
    const char *prefix = oldest_first ? "asc-" : "desc-";
    struct err ignored;

    if (strncmp(text, prefix, strlen(prefix)) != 0 ||
        parse_u64(text + strlen(prefix), ret, &ignored) < 0 || *ret == 0)
        return err_set(err, ERR_INVALID, "Invalid next token");
    return 0;
}

int64_t control_time_parse(const char *text)
{
    struct tm tm = { .tm_isdst = 0 };
    const char *at = strptime(text, "%Y-%m-%d", &tm);
    int64_t ms = 0, scale = 100, offset = 0;
    int hours, minutes, used = 0;

    if (!at || (*at != 'T' && *at != 't' && *at != ' ') || !(at = strptime(at + 1, "%T", &tm)))
        return -1;
    if (*at == '.') {
        if (at[1] < '0' || at[1] > '9')
            return -1;
        for (at++; *at >= '0' && *at <= '9'; at++, scale /= 10)
            ms += (*at - '0') * scale;
    }
    if (*at == '+' || *at == '-') {
        if (sscanf(at + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 || used != 5 || at[6])
            return -1;
        offset = (*at == '-' ? -60 : 60) * (60 * (int64_t) hours + minutes);
    } else if ((*at != 'Z' && *at != 'z') || at[1]) {
        return -1;
    }
    ms += ((int64_t) timegm(&tm) - offset) * 1000;
    return ms < 0 ? 0 : ms;
}

/* One text with commas, as SDKs send it. */
static int read_states(struct exchange *x, uint32_t *ret, struct err *err)
{
    const char *text = exchange_query(x, "state");
    struct slice rest = slice_of(text), one;

    *ret = (1u << LIFE_RUNNING) | (1u << LIFE_PAUSED);
    if (!text || !text[0])
        return 0;
    *ret = 0;
    for (bool more = true; more;) {
        more = slice_cut(&rest, ',', &one);
        if (!more)
            one = rest;
        if (slice_is(one, "running"))
            *ret |= 1u << LIFE_RUNNING;
        else if (slice_is(one, "paused"))
            *ret |= 1u << LIFE_PAUSED;
        else
            return form_bad(exchange_caller(x), err, "state",
                            "'running' and 'paused' are the states there are");
    }
    return 0;
}

static int read_order(struct exchange *x, struct ops_filter *filter, struct err *err)
{
    const char *order = exchange_query(x, "order"), *token = exchange_query(x, "nextToken");

    filter->oldest_first = order && strcmp(order, "asc") == 0;
    if (order && !filter->oldest_first && strcmp(order, "desc") != 0)
        return form_bad(exchange_caller(x), err, "order", "'asc' or 'desc' is needed");
    return token && token[0] ? control_token_get(token, filter->oldest_first, &filter->after, err)
                             : 0;
}

/* One that cannot be is not there, and the list is empty; a tag is refused. */
static int read_template(struct exchange *x, char name[KEEPER_NAME_MAX], struct ops_filter *filter,
                         struct err *err)
{
    const char *text = exchange_query(x, "template");

    if (!text || !text[0])
        return 0;
    if (strchr(text, ':'))
        return form_bad(exchange_caller(x), err, "template", "without a tag");
    filter->asked = control_template_name(text, name, err) < 0 ? "?" : name;
    return 0;
}

static int read_since(struct exchange *x, struct ops_filter *filter, struct err *err)
{
    const char *text = exchange_query(x, "startedAfter");
    int64_t ms = text ? control_time_parse(text) : 0;

    if (ms < 0)
        return form_bad(exchange_caller(x), err, "startedAfter", "a date of RFC 3339 is needed");
    filter->since_ms = (uint64_t) ms;
    return 0;
}

static int reply_page(struct exchange *x, const struct ops_page *page, bool oldest_first,
                      struct err *err)
{
    json_t *array = json_array();
    char token[CONTROL_TOKEN_MAX] = "", running[24];

    for (size_t i = 0; i < page->count; i++)
        (void) json_array_append_new(array, control_sandbox_json(x, &page->list[i], false));
    (void) snprintf(running, sizeof running, "%" PRIu64, page->running);
    if (page->next)
        control_token_put(page->next, oldest_first, token);
    if ((page->next && exchange_add_header(x, "X-Next-Token", token, err) < 0) ||
        exchange_add_header(x, "X-Total-Running", running, err) < 0) {
        json_decref(array);
        return -1;
    }
    return exchange_reply_json(x, 200, array, err);
}

/* The list of old SDKs: all that run, without pages. */
int control_list_v1(struct exchange *x, struct err *err)
{
    const char *metadata = exchange_query(x, "metadata");
    auto_free char *own = metadata ? strdup(metadata) : NULL;
    struct ops_filter filter = { .limit = OPS_PAGE_MAX, .lives = 1u << LIFE_RUNNING };
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_page page;
    json_t *array;

    if (own && control_metadata(own, &filter, err) < 0)
        return -1;
    array = json_array();
    do {
        if (ops_sandbox_list(&ops, &filter, &page, err) < 0) {
            json_decref(array);
            return -1;
        }
        for (size_t i = 0; i < page.count; i++)
            (void) json_array_append_new(array, control_sandbox_json(x, &page.list[i], false));
        free(page.list);
        filter.after = page.next;
    } while (page.next);
    return exchange_reply_json(x, 200, array, err);
}

int control_list(struct exchange *x, struct err *err)
{
    const char *metadata = exchange_query(x, "metadata");
    auto_free char *own = metadata ? strdup(metadata) : NULL;
    struct ops_filter filter = { .limit = 0 };
    char template[KEEPER_NAME_MAX];
    struct ops ops = ops_of(exchange_caller(x));
    uint64_t limit = PAGE_MOST;
    struct ops_page page;
    int r;

    if ((own && control_metadata(own, &filter, err) < 0) ||
        read_states(x, &filter.lives, err) < 0 || read_order(x, &filter, err) < 0 ||
        read_template(x, template, &filter, err) < 0 || read_since(x, &filter, err) < 0 ||
        query_count(x, "limit", 1, PAGE_MOST, &limit, err) < 0)
        return -1;
    filter.limit = (size_t) limit;
    if (ops_sandbox_list(&ops, &filter, &page, err) < 0)
        return -1;
    r = reply_page(x, &page, filter.oldest_first, err);
    free(page.list);
    return r;
}
