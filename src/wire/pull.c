#include "wire/pull.h"

#include "base/own.h"
#include "base/parse.h"

#include <string.h>

#define LIMIT_MOST_MS 86400000u

static bool is_text(const char *field, size_t size)
{
    return memchr(field, '\0', size) != NULL;
}

static bool is_line(const char *field, size_t size)
{
    if (!is_text(field, size))
        return false;
    for (; *field; field++)
        if ((unsigned char) *field < ' ' || *field == 0x7f)
            return false;
    return true;
}

static bool is_digest(const char *text)
{
    return strncmp(text, "sha256:", 7) == 0 && strlen(text) == 71 &&
           strspn(text + 7, "0123456789abcdef") == 64;
}

bool pull_name_is(const char *name)
{
    return strncmp(name, PULL_PREFIX, strlen(PULL_PREFIX)) == 0;
}

bool pull_name_ok(const char *name)
{
    return pull_name_is(name) && name_ok(name) && id_ok(name + strlen(PULL_PREFIX));
}

int pull_order_check(const struct pull_order *o, size_t len, struct err *err)
{
    const struct {
        const char *field;
        size_t size;
    } lines[] = {
        { o->name, sizeof o->name },   { o->reference, sizeof o->reference },
        { o->tag, sizeof o->tag },     { o->basic, sizeof o->basic },
        { o->hosts, sizeof o->hosts }, { o->mirrors, sizeof o->mirrors },
        { o->proxy, sizeof o->proxy },
    };

    if (len != sizeof *o || o->magic != PULL_MAGIC || o->op < PULL_IMAGE || o->op > PULL_REMOVE)
        return err_set(err, ERR_PROTOCOL, "an order for an image that is none");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (!is_line(lines[i].field, lines[i].size))
            return err_set(err, ERR_PROTOCOL, "an order for an image with an invalid text");
    for (size_t i = 0; i < PULL_KNOWN_MAX; i++)
        if (!is_text(o->known[i], sizeof o->known[i]) ||
            (o->known[i][0] && !is_digest(o->known[i])))
            return err_set(err, ERR_PROTOCOL, "an order for an image with an invalid digest");
    if (!pull_name_ok(o->name))
        return err_set(err, ERR_PROTOCOL, "an order for an image with an invalid name");
    return 0;
}

uint64_t pull_order_limit(const struct pull_order *o)
{
    return o->limit_ms < LIMIT_MOST_MS ? o->limit_ms : LIMIT_MOST_MS;
}

int pull_report_check(struct pull_report *r, size_t len, struct err *err)
{
    if (len != sizeof *r || r->magic != PULL_MAGIC || r->word < PULL_STEP ||
        r->word > PULL_FAILED || !is_text(r->text, sizeof r->text) ||
        !is_text(r->digest, sizeof r->digest) || (r->digest[0] && !is_digest(r->digest)))
        return err_set(err, ERR_PROTOCOL, "the process that pulls images said something invalid");
    for (char *c = r->text; *c; c++)
        if ((unsigned char) *c < ' ' || *c == 0x7f)
            *c = '?';
    if (r->word == PULL_FAILED && (r->kind == ERR_NONE || r->kind >= ERR_KIND_COUNT))
        r->kind = ERR_INTERNAL;
    return 0;
}
