/* Messages between coved and cove-gateway. */
#include "egress/message.h"

#include "check.h"

#include <stdlib.h>

#define ID    "iaaaaaaaaaaaaaaaaaaaa"
#define OTHER "ibbbbbbbbbbbbbbbbbbbb"

static struct err err;

static const uint8_t *body_of(const struct message_out *out, size_t *ret_len)
{
    static struct message_head head;

    memcpy(&head, out->data, sizeof head);
    *ret_len = head.size;
    return out->data + sizeof head;
}

static void only_known_heads_of_the_right_direction_are_taken(void)
{
    struct message_head head = { .kind = MESSAGE_SET, .fds = EGRESS_FDS };

    CHECK(message_head_check(&head, true, &err) == 0);
    CHECK(message_head_check(&head, false, &err) == -1);
    head.fds = 2;
    CHECK(message_head_check(&head, true, &err) == -1);
    CHECK_STR(err.msg, "message 'set' with 2 descriptors");
    head = (struct message_head){ .kind = MESSAGE_EVENT, .size = MESSAGE_REPORT_MOST };
    CHECK(message_head_check(&head, false, &err) == -1);
    CHECK_STR(err.msg, "message 'event' of 4096 bytes is too long");
    head = (struct message_head){ .kind = MESSAGE_KINDS };
    CHECK(message_head_check(&head, false, &err) == -1);
    head = (struct message_head){ .kind = MESSAGE_EVENT, .fds = 1 };
    CHECK(message_head_check(&head, false, &err) == -1);
}

static struct message_secrets *some_secrets(void)
{
    struct message_secrets *secrets = calloc(1, sizeof *secrets);
    struct rewrite *rewrite = rewrite_new(2, 1);

    (void) strcpy(rewrite->secrets[0].name, "KEY");
    (void) strcpy(rewrite->secrets[0].placeholder, "cove-secret-1");
    rewrite->secrets[0].value = strdup("hunter2");
    rewrite->secrets[0].host_count = 2;
    CHECK(host_rule_parse("api.example.com:8443", &rewrite->secrets[0].hosts[0], &err) == 0);
    CHECK(host_rule_parse("http://*.example.org", &rewrite->secrets[0].hosts[1], &err) == 0);
    (void) strcpy(rewrite->secrets[1].name, "GONE"); /* without a value */
    (void) strcpy(rewrite->secrets[1].placeholder, "cove-secret-2");
    (void) strcpy(rewrite->headers[0].name, "X-Team");
    rewrite->headers[0].value = strdup("blue");
    CHECK(host_rule_parse("example.com", &rewrite->headers[0].host, &err) == 0);
    rewrite->headers[0].host.plain = true;
    *secrets = (struct message_secrets){ rewrite, strdup("CERT"), strdup("KEYPEM") };
    return secrets;
}

static void rules_arrive_as_they_were_sent(void)
{
    static struct reach rules = { .mode = REACH_LIST, .allow_wins = true };
    static const char *const texts[] = {
        "0.0.0.0/0",       "*",   "*.example.com:443", "[2001:db8::1]:8080", "10.0.0.0/8:22",
        "www.example.com", "::/0"
    };
    static struct message_set set;
    struct message_out out = { .data = NULL };
    const uint8_t *body;
    size_t len;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        CHECK(reach_add(&rules, i % 2, texts[i], &err) == 0);
    CHECK(upstream_parse("socks5://proxy.example.com:1080", &rules.upstream, &err) == 0);
    CHECK(upstream_set_login(&rules.upstream, "me", "secret", &err) == 0);
    rules.upstream.trusted = true;
    CHECK(message_put_set(&out, 7, ID, "acme", &rules, NULL, true, &err) == 0);
    body = body_of(&out, &len);
    CHECK(message_get_set(body, len, &set, &err) == 0);
    CHECK_STR(set.sandbox, ID);
    CHECK_STR(set.tenant, "acme");
    CHECK(!set.secrets);
    CHECK(set.rules.mode == REACH_LIST && set.rules.allow_wins);
    CHECK_INT(set.rules.allow_count, rules.allow_count);
    CHECK_INT(set.rules.deny_count, rules.deny_count);
    CHECK(memcmp(set.rules.allow, rules.allow, rules.allow_count * sizeof rules.allow[0]) == 0);
    CHECK(memcmp(set.rules.deny, rules.deny, rules.deny_count * sizeof rules.deny[0]) == 0);
    CHECK(upstream_same(&set.rules.upstream, &rules.upstream));
    CHECK_STR(set.rules.upstream.password, "secret");
    message_out_done(&out);
}

static void secrets_arrive_as_they_were_sent(void)
{
    static const struct reach rules = { .mode = REACH_PUBLIC };
    static struct message_set set;
    struct message_secrets *secrets = some_secrets();
    struct message_out out = { .data = NULL };
    const struct rewrite *got, *want = secrets->rewrite;
    const uint8_t *body;
    size_t len;

    CHECK(message_put_set(&out, 7, ID, NULL, &rules, secrets, false, &err) == 0);
    body = body_of(&out, &len);
    CHECK(message_get_set(body, len, &set, &err) == 0 && set.secrets);
    got = set.secrets->rewrite;
    CHECK_INT(got->secret_count, 2);
    CHECK_INT(got->header_count, 1);
    CHECK_STR(got->secrets[0].value, "hunter2");
    CHECK_INT(got->secrets[0].host_count, 2);
    for (int i = 0; i < 2; i++)
        CHECK(memcmp(&got->secrets[0].hosts[i], &want->secrets[0].hosts[i],
                     sizeof want->secrets[0].hosts[i]) == 0);
    CHECK_STR(got->secrets[1].placeholder, "cove-secret-2");
    CHECK(!got->secrets[1].value && got->secrets[1].host_count == 0);
    CHECK_STR(got->headers[0].name, "X-Team");
    CHECK_STR(got->headers[0].value, "blue");
    CHECK(got->headers[0].host.plain && got->headers[0].host.tls);
    CHECK_STR(set.secrets->key, "KEYPEM");
    message_secrets_free(set.secrets);
    message_secrets_free(secrets);
    message_out_done(&out);
}

static void a_field_that_is_too_long_makes_no_room_for_itself(void)
{
    static char long_tenant[4 * EGRESS_ID_MAX];
    static const struct reach rules = { .mode = REACH_PUBLIC };
    struct message_out out = { .data = NULL };

    memset(long_tenant, 'a', sizeof long_tenant - 1);
    CHECK(message_put_set(&out, 7, ID, long_tenant, &rules, NULL, false, &err) == -1);
    CHECK_INT(err.kind, ERR_TOO_BIG);
    CHECK_STR(err.msg, "tenant: too long");
    CHECK(out.room < 65536); /* not tried in larger and larger ones */
    message_out_done(&out);
}

static void a_secret_without_a_placeholder_is_refused(void)
{
    static const struct reach rules = { .mode = REACH_PUBLIC };
    static struct message_set set;
    struct message_secrets *secrets = some_secrets();
    struct message_out out = { .data = NULL };
    const uint8_t *body;
    size_t len;

    secrets->rewrite->secrets[1].placeholder[0] = '\0';
    CHECK(message_put_set(&out, 7, ID, NULL, &rules, secrets, false, &err) == 0);
    body = body_of(&out, &len);
    CHECK(message_get_set(body, len, &set, &err) == -1);
    CHECK_STR(err.msg, "a secret without a name or a placeholder");
    message_secrets_free(secrets);
    message_out_done(&out);
}

/* As much as a tenant can have. */
static void the_largest_networks_fit(void)
{
    enum { NETS = 64, MEMBERS = 200 };
    static struct egress_member members[MEMBERS];
    struct egress_net nets[NETS];
    struct message_out out = { .data = NULL };
    struct message_nets got;
    const uint8_t *body;
    size_t len;

    for (size_t i = 0; i < MEMBERS; i++) {
        (void) snprintf(members[i].sandbox, sizeof members[i].sandbox, "i%020zu", i);
        memset(members[i].alias, 'a', EGRESS_LABEL_MAX - 1);
        members[i].port_count = EGRESS_PORTS;
        members[i].seq = UINT64_MAX;
    }
    for (size_t i = 0; i < NETS; i++) {
        nets[i] = (struct egress_net){ .members = members, .count = MEMBERS };
        (void) snprintf(nets[i].name, sizeof nets[i].name, "%062zu", i);
    }
    CHECK(message_put_nets(&out, 1, "acme", nets, NETS, &err) == 0);
    body = body_of(&out, &len);
    CHECK(message_get_nets(body, len, &got, &err) == 0);
    CHECK_INT(got.count, NETS);
    CHECK_INT(got.nets[63].count, MEMBERS);
    CHECK(memcmp(got.nets[63].members, members, sizeof members) == 0);
    message_nets_done(&got);
    message_out_done(&out);
}

static struct egress_event an_event(void)
{
    return (struct egress_event){ .sandbox = ID,
                                  .what = EGRESS_REFUSED,
                                  .host = "www.example.com",
                                  .ip = { { 1, [15] = 2 } },
                                  .port = 443,
                                  .rule = "not allowed",
                                  .process = { 42, "curl" },
                                  .sent = 1,
                                  .received = 2,
                                  .ms = 3,
                                  .missed = 4 };
}

static void events_arrive_as_they_were_sent(void)
{
    struct egress_event sent = an_event(), got;
    struct message_out out = { .data = NULL };
    const uint8_t *body;
    size_t len;

    CHECK(message_put_event(&out, &sent, &err) == 0);
    body = body_of(&out, &len);
    CHECK(message_get_event(body, len, &got, &err) == 0);
    CHECK(memcmp(&sent, &got, sizeof got) == 0);
    message_out_done(&out);
}

static void what_could_harm_a_log_is_cleaned_where_it_is_sent(void)
{
    struct egress_event sent = an_event(), got;
    struct message_out out = { .data = NULL };
    const uint8_t *body;
    size_t len;

    (void) strcpy(sent.reason, "503 \x1b[2J\n\xff");
    CHECK(message_put_event(&out, &sent, &err) == 0);
    body = body_of(&out, &len);
    CHECK(message_get_event(body, len, &got, &err) == 0);
    CHECK_STR(got.reason, "503 ?[2J??");
    message_out_done(&out);
}

static void what_could_harm_a_log_is_refused_where_it_is_read(void)
{
    struct egress_event sent = an_event(), got;
    struct message_out out = { .data = NULL };
    uint8_t *at;
    size_t len;

    CHECK(message_put_event(&out, &sent, &err) == 0);
    (void) body_of(&out, &len);
    at = memmem(out.data, out.len, "www.", 4);
    at[0] = '\n';
    CHECK(message_get_event(out.data + sizeof(struct message_head), len, &got, &err) == -1);
    CHECK_STR(err.msg, "host: unexpected character");
    message_out_done(&out);
}

static void an_event_without_a_sandbox_is_refused(void)
{
    struct egress_event sent = an_event(), got;
    struct message_out out = { .data = NULL };
    const uint8_t *body;
    size_t len;

    (void) strcpy(sent.sandbox, "../../etc/passwd");
    CHECK(message_put_event(&out, &sent, &err) == 0);
    body = body_of(&out, &len);
    CHECK(message_get_event(body, len, &got, &err) == -1);
    CHECK_STR(err.msg, "sandbox: not an id");
    CHECK(message_get_event(NULL, 0, &got, &err) == -1);
    message_out_done(&out);
}

static void dials_and_questions_arrive_as_they_were_sent(void)
{
    struct egress_dial dial = { 9, "acme", ID, OTHER, 8080 }, dialed;
    struct egress_ask ask = { ID, 8, true, { { 1 } }, { { 2 } }, 1, 53 }, asked;
    struct message_out out = { .data = NULL };
    const uint8_t *body;
    size_t len;

    CHECK(message_put_dial(&out, &dial, &err) == 0);
    body = body_of(&out, &len);
    CHECK(message_get_dial(body, len, &dialed, &err) == 0);
    CHECK(dialed.ticket == 9 && dialed.port == 8080);
    CHECK_STR(dialed.tenant, "acme");
    CHECK_STR(dialed.from, ID);
    CHECK_STR(dialed.to, OTHER);
    out.len = 0;
    CHECK(message_put_ask(&out, &ask, &err) == 0);
    body = body_of(&out, &len);
    CHECK(message_get_ask(body, len, &asked, &err) == 0);
    CHECK(memcmp(&ask.from, &asked.from, sizeof ask.from) == 0 && asked.ticket == 8);
    CHECK(asked.datagram && asked.to_port == 53);
    message_out_done(&out);
}

CHECK_MAIN(T(only_known_heads_of_the_right_direction_are_taken), T(rules_arrive_as_they_were_sent),
           T(secrets_arrive_as_they_were_sent),
           T(a_field_that_is_too_long_makes_no_room_for_itself),
           T(a_secret_without_a_placeholder_is_refused), T(the_largest_networks_fit),
           T(events_arrive_as_they_were_sent), T(what_could_harm_a_log_is_cleaned_where_it_is_sent),
           T(what_could_harm_a_log_is_refused_where_it_is_read),
           T(an_event_without_a_sandbox_is_refused),
           T(dials_and_questions_arrive_as_they_were_sent))
