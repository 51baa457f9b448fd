/* Rules on the network: what is fetched, sent, opened and scanned. */
#include "policy/judge.h"

#include "base/own.h"
#include "policy/paths.h"

#include <string.h>
#include <strings.h>

enum net_kind { NET_TOOL, NET_RAW, NET_SCAN, NET_TUNNEL };

static const struct {
    const char *name;
    enum net_kind kind;
} tools[] = {
    { "curl", NET_TOOL },       { "wget", NET_TOOL },          { "http", NET_TOOL },
    { "fetch", NET_TOOL },      { "aria2c", NET_TOOL },        { "lynx", NET_TOOL },
    { "ftp", NET_TOOL },        { "sftp", NET_TOOL },          { "tftp", NET_TOOL },
    { "scp", NET_TOOL },        { "ssh", NET_TOOL },           { "dig", NET_TOOL },
    { "nslookup", NET_TOOL },   { "host", NET_TOOL },          { "ping", NET_TOOL },
    { "traceroute", NET_TOOL }, { "whois", NET_TOOL },         { "mail", NET_TOOL },
    { "sendmail", NET_TOOL },   { "rclone", NET_TOOL },        { "nc", NET_RAW },
    { "ncat", NET_RAW },        { "netcat", NET_RAW },         { "telnet", NET_RAW },
    { "socat", NET_RAW },       { "nmap", NET_SCAN },          { "masscan", NET_SCAN },
    { "zmap", NET_SCAN },       { "hping3", NET_SCAN },        { "tcpdump", NET_SCAN },
    { "tshark", NET_SCAN },     { "arpspoof", NET_SCAN },      { "ettercap", NET_SCAN },
    { "hydra", NET_SCAN },      { "nikto", NET_SCAN },         { "ngrok", NET_TUNNEL },
    { "chisel", NET_TUNNEL },   { "cloudflared", NET_TUNNEL }, { "frpc", NET_TUNNEL },
    { "bore", NET_TUNNEL },     { "localtunnel", NET_TUNNEL }, { "tailscale", NET_TUNNEL },
};

static int kind_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(tools); i++)
        if (strcmp(name, tools[i].name) == 0)
            return (int) tools[i].kind;
    return -1;
}

/* Options of curl and wget whose value is a file to send; with '@' where the row says so. */
static const struct {
    const char *program;
    char letter;
    const char *word;
    bool marked;
} uploads[] = {
    { "curl", 'T', "upload-file", false }, { "curl", 'd', "data", true },
    { "curl", 0, "data-binary", true },    { "curl", 0, "data-raw", false },
    { "curl", 0, "data-urlencode", true }, { "curl", 'F', "form", true },
    { "wget", 0, "post-file", false },     { "wget", 0, "body-file", false },
};

static void judge_upload(struct analysis *an, const struct command *c, const char *value)
{
    const char *path = path_resolve(an, value);
    const struct file *file = file_find(an, path);

    if (judge_is_secret(path_rule(an, path, false, POLICY_READ)) ||
        (file && (file->content.taint & TAINT_SECRET)))
        violate(an, RULE_EXFILTRATION, c->at, c->shown);
    else
        violate(an, RULE_UPLOAD, c->at, c->shown);
}

static void http(struct analysis *an, const struct command *c)
{
    for (size_t i = 0; i < ARRAY_LEN(uploads); i++) {
        const struct field *value;
        const char *at;

        if (strcmp(c->name, uploads[i].program) != 0)
            continue;
        value = command_value(an, c, uploads[i].letter, uploads[i].word);
        if (!value || strcmp(uploads[i].word, "data-raw") == 0)
            continue;
        at = value->text;
        if (uploads[i].marked) {
            /* "user@example.org" is data; "@file" and "name=@file" are files */
            at = strchr(value->text, '@');
            if (!at || (at != value->text && at[-1] != '='))
                continue;
            at++;
        }
        if (strcmp(at, "-") != 0)
            judge_upload(an, c, at);
    }
}

static void netcat(struct analysis *an, const struct command *c)
{
    bool executes = command_flag(c, 'e', "exec") || command_flag(c, 0, "sh-exec") ||
                    (command_flag(c, 'c', NULL) && strcmp(c->name, "telnet") != 0);

    if (executes)
        violate(an, RULE_REVERSE_SHELL, c->at, c->shown);
    if (command_flag(c, 'l', "listen"))
        violate(an, RULE_LISTEN, c->at, c->shown);
}

static void socat(struct analysis *an, const struct command *c)
{
    bool executes = false, remote = false, listens = false;

    for (size_t i = 1; i < c->argc; i++) {
        const char *arg = c->argv[i].text;

        executes |=
            strcasestr(arg, "exec:") || strcasestr(arg, "system:") || strcasestr(arg, "shell:");
        remote |= strcasestr(arg, "tcp") || strcasestr(arg, "udp") || strcasestr(arg, "openssl") ||
                  strcasestr(arg, "ssl:") || strcasestr(arg, "sctp");
        listens |= strcasestr(arg, "listen") || strcasestr(arg, "tcp-l:");
    }
    if (executes && remote)
        violate(an, RULE_REVERSE_SHELL, c->at, c->shown);
    else if (listens)
        violate(an, RULE_LISTEN, c->at, c->shown);
}

static void copies(struct analysis *an, const struct command *c)
{
    const struct field *last = c->argc > 2 ? &c->argv[c->argc - 1] : NULL;
    const struct field *from;

    if (!last || !strchr(last->text, ':'))
        return;
    for (size_t i = 0; (from = command_operand(c, i)) && from != last; i++)
        if (!strchr(from->text, ':'))
            judge_upload(an, c, from->text);
}

static void ssh(struct analysis *an, const struct command *c)
{
    for (size_t i = 1; i < c->argc && c->argv[i].text[0] == '-'; i++)
        if (strchr("RDw", c->argv[i].text[1]) && c->argv[i].text[1])
            violate(an, RULE_TUNNEL, c->at, c->shown);
}

static const struct {
    const char *name;
    void (*judge)(struct analysis *an, const struct command *c);
} judges[] = {
    { "curl", http },     { "wget", http },     { "nc", netcat },  { "ncat", netcat },
    { "netcat", netcat }, { "socat", socat },   { "scp", copies }, { "rsync", copies },
    { "ssh", ssh },       { "rclone", copies },
};

/* Whether a secret goes in by a pipe, by an argument, or as a file that a raw connection sends. */
static bool takes_secret(const struct command *c)
{
    if (c->in && (c->in->taint & TAINT_SECRET))
        return true;
    for (size_t i = 1; i < c->argc; i++)
        if (c->argv[i].taint & TAINT_SECRET)
            return true;
    return false;
}

void judge_network(struct analysis *an, const struct command *c)
{
    int kind = kind_of(c->name);
    bool raw = kind == NET_RAW || (strcmp(c->name, "openssl") == 0 && command_has(c, "s_client"));

    for (size_t i = 1; i < c->argc; i++)
        if (strstr(c->argv[i].text, "169.254.169.254") ||
            strstr(c->argv[i].text, "metadata.google.internal"))
            violate(an, RULE_CRED_METADATA, c->at, c->shown);
    for (size_t i = 0; i < ARRAY_LEN(judges); i++)
        if (strcmp(c->name, judges[i].name) == 0)
            judges[i].judge(an, c);
    if (raw)
        an->pipe_netcat++;
    if (kind < 0 && !raw)
        return;
    if (takes_secret(c))
        violate(an, RULE_EXFILTRATION, c->at, c->shown);
    if (kind == NET_SCAN)
        violate(an, RULE_SCAN, c->at, c->shown);
    if (kind == NET_TUNNEL)
        violate(an, RULE_TUNNEL, c->at, c->shown);
    if (!an->policy->network)
        violate(an, RULE_NETWORK, c->at, c->shown);
}
