#include "base/json.h"

#include <inttypes.h>
#include <string.h>

void json_out_init(struct json_out *json, FILE *out)
{
    memset(json, 0, sizeof *json);
    json->out = out;
}

/* Length of the UTF-8 character at text, 0 if there is none: overlong forms, surrogates and
 * values past U+10FFFF are none. A NUL is no continuation byte, so the end is never passed. */
static size_t utf8_len(const unsigned char *text)
{
    static const struct {
        unsigned char first, last, least, most; /* range of the lead byte, and of the second byte */
        unsigned char len;
    } forms[] = {
        { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
        { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
        { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };

    if (text[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last)
            continue;
        if (text[1] < forms[i].least || text[1] > forms[i].most)
            return 0;
        for (size_t k = 2; k < forms[i].len; k++)
            if (text[k] < 0x80 || text[k] > 0xbf)
                return 0;
        return forms[i].len;
    }
    return 0;
}

static void put_quoted(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *) text;

    (void) fputc('"', out);
    while (*at) {
        size_t len = utf8_len(at);

        if (len == 0) {
            (void) fputs("\\ufffd", out);
            at++;
            continue;
        }
        if (*at == '"' || *at == '\\')
            (void) fprintf(out, "\\%c", *at);
        else if (*at == '\n')
            (void) fputs("\\n", out);
        else if (*at == '\t')
            (void) fputs("\\t", out);
        else if (*at < 0x20 || *at == 0x7f)
            (void) fprintf(out, "\\u%04x", *at);
        else
            (void) fwrite(at, 1, len, out);
        at += len;
    }
    (void) fputc('"', out);
}

static void indent(struct json_out *json)
{
    if (json->one_line)
        return;
    (void) fputc('\n', json->out);
    for (unsigned i = 0; i < json->depth; i++)
        (void) fputs("  ", json->out);
}

/* Comma, line and key before an item. */
static bool begin(struct json_out *json, const char *key)
{
    uint64_t bit = 1ull << json->depth;
    bool in_object = json->depth > 0 && (json->is_object & bit);

    /* A key in objects and nowhere else; one value only at the top. */
    if (in_object != (key != NULL) || (json->depth == 0 && (json->has_items & bit)))
        json->bad = true;
    if (json->bad)
        return false;
    if (json->has_items & bit)
        (void) fputc(',', json->out);
    json->has_items |= bit;
    if (json->depth > 0)
        indent(json);
    if (key) {
        put_quoted(json->out, key);
        (void) fputs(": ", json->out);
    }
    return true;
}

static void open_level(struct json_out *json, const char *key, bool object)
{
    if (json->depth == JSON_DEPTH_MAX)
        json->bad = true;
    if (!begin(json, key))
        return;
    (void) fputc(object ? '{' : '[', json->out);
    json->depth++;
    json->has_items &= ~(1ull << json->depth);
    if (object)
        json->is_object |= 1ull << json->depth;
    else
        json->is_object &= ~(1ull << json->depth);
}

void json_out_object(struct json_out *json, const char *key)
{
    open_level(json, key, true);
}

void json_out_array(struct json_out *json, const char *key)
{
    open_level(json, key, false);
}

void json_out_end(struct json_out *json)
{
    uint64_t bit = 1ull << json->depth;
    bool object = json->is_object & bit, items = json->has_items & bit;

    if (json->depth == 0)
        json->bad = true;
    if (json->bad)
        return;
    json->depth--;
    if (items)
        indent(json);
    (void) fputc(object ? '}' : ']', json->out);
}

void json_out_text(struct json_out *json, const char *key, const char *text)
{
    if (!begin(json, key))
        return;
    if (text)
        put_quoted(json->out, text);
    else
        (void) fputs("null", json->out);
}

void json_out_raw(struct json_out *json, const char *key, const char *value)
{
    if (begin(json, key))
        (void) fputs(value, json->out);
}

void json_out_number(struct json_out *json, const char *key, uint64_t value)
{
    if (begin(json, key))
        (void) fprintf(json->out, "%" PRIu64, value);
}

void json_out_signed(struct json_out *json, const char *key, int64_t value)
{
    if (begin(json, key))
        (void) fprintf(json->out, "%" PRId64, value);
}

void json_out_bool(struct json_out *json, const char *key, bool value)
{
    if (begin(json, key))
        (void) fputs(value ? "true" : "false", json->out);
}

int json_out_finish(struct json_out *json)
{
    if (json->depth != 0 || !(json->has_items & 1))
        json->bad = true;
    if (!json->bad)
        (void) fputc('\n', json->out);
    return json->bad || ferror(json->out) ? -1 : 0;
}
