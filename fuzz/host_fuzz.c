/* host_fuzz.c - names of hosts that something is bound to, and addresses to listen on.
 *
 * What was read, written out again, reads as the same; a rule fits its own name and never one that does not end
 * with it; what is refused is refused in words. */
#include "base/address.h"
#include "base/host.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void try_rule(const char *text)
{
    char again_text[HOST_MAX + 32], below[HOST_MAX + 2], normal[HOST_MAX];
    struct host_rule rule, again;
    struct err err = { 0 };
    uint16_t port;

    if (host_rule_parse(text, &rule, &err) < 0) {
        must(err.kind == ERR_INVALID && err.msg[0]);
        return;
    }
    port = rule.port ? rule.port : 443;
    must(rule.plain != rule.tls);
    must(name_normal(rule.name, strlen(rule.name), normal) && strcmp(normal, rule.name) == 0);
    must(host_rule_fits(&rule, rule.name, port, rule.tls) == !rule.below);
    must(!host_rule_fits(&rule, rule.name, port, !rule.tls));
    (void) snprintf(below, sizeof below, "a.%s", rule.name);
    must(host_rule_fits(&rule, below, port, rule.tls) == rule.below);
    below[1] = 'b';
    must(!host_rule_fits(&rule, below, port, rule.tls));
    (void) snprintf(again_text, sizeof again_text, "%s%s%s", rule.plain ? "http://" : "",
                    rule.below ? "*." : "", rule.name);
    if (rule.port)
        (void) snprintf(again_text + strlen(again_text), 8, ":%u", rule.port);
    must(host_rule_parse(again_text, &again, &err) == 0 && strcmp(again.name, rule.name) == 0 &&
         again.port == rule.port && again.below == rule.below && again.plain == rule.plain);
}

static void try_address(const char *text)
{
    struct address address, again;
    struct err err = { 0 };
    char out[80];

    if (address_parse(text, &address, &err) < 0) {
        must(err.kind == ERR_USAGE && err.msg[0]);
        return;
    }
    address_print(&address, out, sizeof out);
    must(address_parse(out, &again, &err) == 0 && again.len == address.len &&
         memcmp(&again.at, &address.at, address.len) == 0 && again.loopback == address.loopback);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    try_rule(text);
    try_address(text);
    free(text);
    return 0;
}
