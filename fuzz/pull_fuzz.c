/* What coved, or cove-pulls, that was taken over says to the other: a packet as an order, and as a report. Whatever is taken is made of lines,
 * names no other template, and can be shown. */
#include "base/parse.h"
#include "wire/pull.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static void check_line(const char *text, size_t size)
{
    must(strnlen(text, size) < size);
    for (; *text; text++)
        must((unsigned char) *text >= 0x20 && *text != 0x7f);
}

static void check_digest(const char *digest, size_t size)
{
    check_line(digest, size);
    must(!digest[0] || (strlen(digest) == 71 && strspn(digest, "sha256:0123456789abcdef") == 71));
}

static void check_order(const struct pull_order *o)
{
    must(o->op == PULL_IMAGE || o->op == PULL_ARCHIVE || o->op == PULL_REMOVE);
    check_line(o->name, sizeof o->name);
    must(strncmp(o->name, PULL_PREFIX, strlen(PULL_PREFIX)) == 0 && name_ok(o->name));
    must(!strchr(o->name, '/') && !strstr(o->name, ".."));
    check_line(o->reference, sizeof o->reference);
    check_line(o->tag, sizeof o->tag);
    check_line(o->basic, sizeof o->basic);
    check_line(o->hosts, sizeof o->hosts);
    check_line(o->mirrors, sizeof o->mirrors);
    check_line(o->proxy, sizeof o->proxy);
    for (size_t i = 0; i < PULL_KNOWN_MAX; i++)
        check_digest(o->known[i], sizeof o->known[i]);
}

static void check_report(const struct pull_report *r)
{
    must(r->word >= PULL_STEP && r->word <= PULL_FAILED);
    must(r->word != PULL_FAILED || (r->kind != ERR_NONE && r->kind < ERR_KIND_COUNT));
    check_line(r->text, sizeof r->text);
    check_digest(r->digest, sizeof r->digest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pull_order order;
    struct pull_report report = { 0 };
    struct err err;

    /* A shorter packet leaves what was there before. */
    memcpy(&order, data, size < sizeof order ? size : sizeof order);
    if (pull_order_check(&order, size, &err) == 0)
        check_order(&order);
    memcpy(&report, data, size < sizeof report ? size : sizeof report);
    if (pull_report_check(&report, size, &err) == 0)
        check_report(&report);
    return 0;
}
