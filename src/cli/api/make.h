/* make.h - what a new sandbox is like: the options of run, shell and create, and the body of a create that they mean. Every
 * field of POST /v1/sandboxes has one. */
#ifndef COVE_CLI_API_MAKE_H
#define COVE_CLI_API_MAKE_H

#include "cli/options.h"
#include "wire/limits.h"

#include <jansson.h>

struct make_options {
    const char *template, *name, *snapshot, *isolation, *network, *proxy, *proxy_login, *on_timeout,
        *idempotency_key, *mask_host;
    bool root, no_memory, auto_resume, preview_public, preview_resume;
    struct option_list volumes, allow, deny, secrets, joins, metadata;
    const char *lifetime, *idle_pause, *idle_disk; /* durations */
    struct limits limits;                          /* 0: not said */
};

/* clang-format off */
#define MAKE_ROW(type, member, letter, name, kind, field, value, complete, help) \
    { letter, name, kind, offsetof(type, member.field), value, complete, help }
#define MAKE_OPTIONS(type, m) \
    MAKE_ROW(type, m, 0,   "template",    OPTION_TEXT, template, "NAME", COMPLETE_TEMPLATE, "what it starts from ('base' if built, else 'host')"), \
    MAKE_ROW(type, m, 0,   "snapshot",    OPTION_TEXT, snapshot, "SNAPSHOT", COMPLETE_NONE, "what it is made of: files, processes, limits where none are given"), \
    MAKE_ROW(type, m, 0,   "no-memory",   OPTION_FLAG, no_memory, NULL, COMPLETE_NONE, "of a snapshot only the files; it starts again"), \
    MAKE_ROW(type, m, 0,   "name",        OPTION_TEXT, name, "NAME", COMPLETE_NONE, "a name for it, beside its id"), \
    MAKE_ROW(type, m, 0,   "root",        OPTION_FLAG, root, NULL, COMPLETE_NONE, "allow the sandbox's own root inside (sudo, apt)"), \
    MAKE_ROW(type, m, 0,   "isolation",   OPTION_TEXT, isolation, "KIND", COMPLETE_NONE, "what isolates it: jail, gvisor, vm"), \
    MAKE_ROW(type, m, 'v', "volume",      OPTION_LIST, volumes, "NAME:DIR", COMPLETE_NONE, "mount a volume there; NAME:DIR:ro to read only (repeatable)"), \
    MAKE_ROW(type, m, 0,   "network",     OPTION_TEXT, network, "MODE", COMPLETE_NONE, "what it may reach: off, public, or rules alone"), \
    MAKE_ROW(type, m, 0,   "allow",       OPTION_LIST, allow, "RULE", COMPLETE_NONE, "a name, address or range with a port that it may reach (repeatable)"), \
    MAKE_ROW(type, m, 0,   "deny",        OPTION_LIST, deny, "RULE", COMPLETE_NONE, "one that it may not reach (repeatable)"), \
    MAKE_ROW(type, m, 0,   "proxy",       OPTION_TEXT, proxy, "URL", COMPLETE_NONE, "http://HOST:PORT or socks5://HOST:PORT that its connections go through"), \
    MAKE_ROW(type, m, 0,   "proxy-login", OPTION_TEXT, proxy_login, "FILE", COMPLETE_FILE, "user and password of the proxy: user:password in one line; -: stdin"), \
    MAKE_ROW(type, m, 0,   "secret",      OPTION_LIST, secrets, "NAME", COMPLETE_NONE, "a secret that it uses and never sees (repeatable)"), \
    MAKE_ROW(type, m, 0,   "join",        OPTION_LIST, joins, "NET[:NAME[:PORTS]]", COMPLETE_NONE, "a private network to be in, the name there, ports that the others may reach (repeatable)"), \
    MAKE_ROW(type, m, 0,   "metadata",    OPTION_LIST, metadata, "KEY=VAL", COMPLETE_NONE, "a note that lists show and filters find (repeatable)"), \
    MAKE_ROW(type, m, 0,   "lifetime",    OPTION_TEXT, lifetime, "TIME", COMPLETE_NONE, "how long a sandbox that stays may exist"), \
    MAKE_ROW(type, m, 0,   "on-timeout",  OPTION_TEXT, on_timeout, "WHAT", COMPLETE_NONE, "at its deadline: kill or pause (kill)"), \
    MAKE_ROW(type, m, 0,   "idle-pause",  OPTION_TEXT, idle_pause, "TIME", COMPLETE_NONE, "pause it when nothing happened for so long; 0: never"), \
    MAKE_ROW(type, m, 0,   "idle-disk",   OPTION_TEXT, idle_disk, "TIME", COMPLETE_NONE, "and move it to disk after so long; 0: never"), \
    MAKE_ROW(type, m, 0,   "auto-resume", OPTION_FLAG, auto_resume, NULL, COMPLETE_NONE, "a request to it wakes it when it is paused"), \
    MAKE_ROW(type, m, 0,   "public",      OPTION_FLAG, preview_public, NULL, COMPLETE_NONE, "its ports need no token"), \
    MAKE_ROW(type, m, 0,   "preview-resume", OPTION_FLAG, preview_resume, NULL, COMPLETE_NONE, "a visitor of its ports wakes it"), \
    MAKE_ROW(type, m, 0,   "mask-host",   OPTION_TEXT, mask_host, "HOST", COMPLETE_NONE, "the Host that servers inside see"), \
    MAKE_ROW(type, m, 0,   "idempotency-key", OPTION_TEXT, idempotency_key, "KEY", COMPLETE_NONE, "the same key again: the same sandbox")
/* clang-format on */

/* The body of a create; the caller's to decref. stays: the sandbox is not tied to a connection, and so has a lifetime: the one
 * that was given, or on this host's own server none. env: K=V for every command in it; NULL: none. */
int make_body(const struct make_options *options, bool stays, const struct option_list *env,
              json_t **ret, struct err *err);

/* KEY=VALUE texts into an object; KEY alone takes the value that cove itself has, if it has one. */
int make_assignments(const char *option, const struct option_list *list, bool inherit,
                     json_t *object, struct err *err);

#endif
