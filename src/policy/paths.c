#include "policy/paths.h"

#include "base/own.h"

#include <ctype.h>
#include <string.h>

bool glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;

    while (*text) {
        const char *next = pattern + 1;
        bool fits;

        if (*pattern == '*') {
            star = ++pattern;
            resume = text;
            continue;
        }
        if (*pattern == '[' && strchr(pattern + 1, ']')) {
            bool negate = pattern[1] == '!' || pattern[1] == '^';
            const char *set = pattern + 1 + negate, *c = set;

            fits = false;
            for (; *c && (*c != ']' || c == set); c++)
                if (c[1] == '-' && c[2] && c[2] != ']') {
                    fits |= *text >= c[0] && *text <= c[2];
                    c += 2;
                } else {
                    fits |= *c == *text;
                }
            next = *c ? c + 1 : c;
            fits = fits != negate;
        } else {
            fits = *pattern == '?' || *pattern == *text || *pattern == UNKNOWN;
        }
        if (fits && *pattern) {
            pattern = next;
            text++;
        } else if (star) {
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

const char *path_resolve(struct analysis *an, const char *text)
{
    size_t cwd_len = strlen(an->cwd), len = strlen(text), n = 0;
    char *all, *out;

    if (*text == UNKNOWN || (*text != '/' && !cwd_len))
        return text;
    all = arena_alloc(&an->arena, cwd_len + len + 2);
    out = arena_alloc(&an->arena, cwd_len + len + 3);
    spend(an, 1 + (cwd_len + len) / 8);
    if (*text != '/') {
        memcpy(all, an->cwd, cwd_len);
        all[cwd_len] = '/';
        memcpy(all + cwd_len + 1, text, len);
    } else {
        memcpy(all, text, len);
    }
    for (const char *at = all; *at;) {
        const char *end;

        while (*at == '/')
            at++;
        end = strchrnul(at, '/');
        if (end - at == 2 && at[0] == '.' && at[1] == '.') {
            while (n > 0 && out[--n] != '/')
                ;
        } else if (end != at && !(end - at == 1 && *at == '.')) {
            out[n++] = '/';
            memcpy(out + n, at, (size_t) (end - at));
            n += (size_t) (end - at);
        }
        at = end;
    }
    if (n == 0)
        out[n++] = '/';
    out[n] = '\0';
    return out;
}

/* One component against another, of which either may be a glob. */
static bool part_meets(const char *pattern, size_t pattern_len, const char *part, size_t part_len,
                       bool part_glob)
{
    char a[256], b[256];

    if (pattern_len >= sizeof a || part_len >= sizeof b)
        return false;
    memcpy(a, pattern, pattern_len);
    a[pattern_len] = '\0';
    memcpy(b, part, part_len);
    b[part_len] = '\0';
    if (glob_match(a, b))
        return true;
    /* A glob does not reach dot files by itself, and "*" alone says nothing. */
    if (!part_glob || !strpbrk(b, "*?[") || (strchr("*?[", *b) && *a == '.'))
        return false;
    /* Of two globs, ours stands for its shortest: "sh?dow" meets "shadow*". */
    for (char *from = a, *to = a;; from++) {
        if (*from != '*')
            *to++ = *from;
        if (!*from)
            break;
    }
    return glob_match(b, a);
}

static bool meets_from_here(const char *pattern, const char *path, bool is_glob)
{
    while (*pattern) {
        const char *pattern_end, *path_end;

        while (*pattern == '/')
            pattern++;
        while (*path == '/')
            path++;
        if (!*pattern)
            return true;
        if (!*path)
            return false;
        pattern_end = strchrnul(pattern, '/');
        path_end = strchrnul(path, '/');
        if (!part_meets(pattern, (size_t) (pattern_end - pattern), path, (size_t) (path_end - path),
                        is_glob))
            return false;
        pattern = pattern_end;
        path = path_end;
    }
    return true;
}

/* Components made only of wildcards could be anything: such a path is not held against anybody. */
static bool says_something(const char *path)
{
    while (*path) {
        const char *end;
        bool wild = false, literal = false;

        while (*path == '/')
            path++;
        end = strchrnul(path, '/');
        for (const char *c = path; c < end; c++) {
            wild |= strchr("*?[", *c) != NULL;
            literal |= isalnum((unsigned char) *c) != 0;
        }
        if (wild && !literal)
            return false;
        path = end;
    }
    return true;
}

bool path_meets(const char *pattern, const char *path, bool is_glob)
{
    if (is_glob && !says_something(path))
        is_glob = false;
    if (strncmp(pattern, "**/", 3) != 0)
        return *path == '/' && meets_from_here(pattern, path, is_glob);
    for (const char *at = path; at && *at; at = strchr(at + 1, '/'))
        if (meets_from_here(pattern + 3, at, is_glob))
            return true;
    return false;
}

bool path_like(const char *text)
{
    size_t slash = strcspn(text, "/");

    if (*text == '-' || !text[slash] || strstr(text, "://"))
        return *text == '.' && (!text[1] || !strcmp(text, ".."));
    for (const char *c = text; *c; c++)
        if (strchr("\n;|<>\"'`$(){}", *c))
            return false;
    return true;
}

/* The first row that fits the path and the access counts: exceptions stand before what they are
 * taken from. */
static const struct {
    const char *pattern;
    enum rule on_read, on_write;
} path_rules[] = {
    /* clang-format off */
    { "/dev/null",                      RULE_NONE,         RULE_NONE },
    { "/dev/tcp",                       RULE_DEV_TCP,      RULE_DEV_TCP },
    { "/dev/udp",                       RULE_DEV_TCP,      RULE_DEV_TCP },
    { "/dev/[shv]d[a-z]*",              RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/xvd*",                      RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/nvme*",                     RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/mmcblk*",                   RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/dm-*",                      RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/md[0-9]*",                  RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/mapper",                    RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/disk",                      RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/loop*",                     RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/mem",                       RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/kmem",                      RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/dev/port",                      RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/proc/kcore",                    RULE_DISK_READ,    RULE_DISK_WRITE },
    { "/proc/*/environ",                RULE_CRED_PROCESS, RULE_CRED_PROCESS },
    { "/proc/*/mem",                    RULE_CRED_PROCESS, RULE_CRED_PROCESS },
    { "/proc/*/auxv",                   RULE_CRED_PROCESS, RULE_CRED_PROCESS },
    { "/proc/*/root",                   RULE_ESCAPE,       RULE_ESCAPE },
    { "/proc/sysrq-trigger",            RULE_NONE,         RULE_SYSRQ },
    { "/proc/sys/kernel/core_pattern",  RULE_NONE,         RULE_ESCAPE },
    { "/proc/sys/kernel/modprobe",      RULE_NONE,         RULE_ESCAPE },
    { "/proc/sys",                      RULE_NONE,         RULE_KERNEL_SETTING },
    { "/sys/kernel/uevent_helper",      RULE_NONE,         RULE_ESCAPE },
    { "**/release_agent",               RULE_NONE,         RULE_ESCAPE },
    { "**/notify_on_release",           RULE_NONE,         RULE_ESCAPE },
    { "/sys",                           RULE_NONE,         RULE_KERNEL_SETTING },
    { "**/docker.sock",                 RULE_SOCKET,       RULE_SOCKET },
    { "**/containerd.sock",             RULE_SOCKET,       RULE_SOCKET },
    { "**/podman.sock",                 RULE_SOCKET,       RULE_SOCKET },
    { "**/crio.sock",                   RULE_SOCKET,       RULE_SOCKET },
    { "/etc/ld.so.preload",             RULE_NONE,         RULE_PRELOAD },
    { "/etc/shadow*",                   RULE_CRED_SYSTEM,  RULE_ACCOUNT_FILES },
    { "/etc/gshadow*",                  RULE_CRED_SYSTEM,  RULE_ACCOUNT_FILES },
    { "/etc/master.passwd",             RULE_CRED_SYSTEM,  RULE_ACCOUNT_FILES },
    { "/etc/security/opasswd",          RULE_CRED_SYSTEM,  RULE_ACCOUNT_FILES },
    { "/etc/sudoers*",                  RULE_CRED_SYSTEM,  RULE_ACCOUNT_FILES },
    { "/etc/ssh/*_key",                 RULE_CRED_SYSTEM,  RULE_SYSTEM_WRITE },
    { "/etc/passwd*",                   RULE_NONE,         RULE_ACCOUNT_FILES },
    { "/etc/group*",                    RULE_NONE,         RULE_ACCOUNT_FILES },
    { "/etc/pam.d",                     RULE_NONE,         RULE_ACCOUNT_FILES },
    { "/etc/cron*",                     RULE_NONE,         RULE_CRON },
    { "/etc/anacrontab",                RULE_NONE,         RULE_CRON },
    { "/var/spool/cron",                RULE_NONE,         RULE_CRON },
    { "/etc/systemd",                   RULE_NONE,         RULE_SERVICE },
    { "/lib/systemd",                   RULE_NONE,         RULE_SERVICE },
    { "/usr/lib/systemd",               RULE_NONE,         RULE_SERVICE },
    { "/etc/init.d",                    RULE_NONE,         RULE_SERVICE },
    { "/etc/rc*",                       RULE_NONE,         RULE_SERVICE },
    { "/etc/inittab",                   RULE_NONE,         RULE_SERVICE },
    { "**/.config/systemd",             RULE_NONE,         RULE_SERVICE },
    { "**/.config/autostart",           RULE_NONE,         RULE_SERVICE },
    { "/etc/profile*",                  RULE_NONE,         RULE_STARTUP },
    { "/etc/bash.bashrc",               RULE_NONE,         RULE_STARTUP },
    { "/etc/environment",               RULE_NONE,         RULE_STARTUP },
    { "**/.bashrc",                     RULE_NONE,         RULE_STARTUP },
    { "**/.bash_profile",               RULE_NONE,         RULE_STARTUP },
    { "**/.bash_login",                 RULE_NONE,         RULE_STARTUP },
    { "**/.bash_logout",                RULE_NONE,         RULE_STARTUP },
    { "**/.profile",                    RULE_NONE,         RULE_STARTUP },
    { "**/.zshrc",                      RULE_NONE,         RULE_STARTUP },
    { "**/.zshenv",                     RULE_NONE,         RULE_STARTUP },
    { "**/.zprofile",                   RULE_NONE,         RULE_STARTUP },
    { "**/.xinitrc",                    RULE_NONE,         RULE_STARTUP },
    { "**/.bash_history",               RULE_CRED_USER,    RULE_TAMPER },
    { "**/.zsh_history",                RULE_CRED_USER,    RULE_TAMPER },
    { "/var/log",                       RULE_NONE,         RULE_TAMPER },
    { "/var/run/utmp",                  RULE_NONE,         RULE_TAMPER },
    { "**/.ssh/authorized_keys*",       RULE_NONE,         RULE_AUTHORIZED_KEYS },
    { "**/.ssh/known_hosts*",           RULE_NONE,         RULE_NONE },
    { "**/.ssh/*.pub",                  RULE_NONE,         RULE_NONE },
    { "**/.ssh",                        RULE_CRED_USER,    RULE_CRED_USER },
    { "**/id_rsa",                      RULE_CRED_USER,    RULE_NONE },
    { "**/id_ed25519",                  RULE_CRED_USER,    RULE_NONE },
    { "**/.gnupg",                      RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.aws",                        RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.azure",                      RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.config/gcloud",              RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.config/gh/hosts.yml",        RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.kube/config",                RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.docker/config.json",         RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.netrc",                      RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.git-credentials",            RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.pgpass",                     RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.my.cnf",                     RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.pypirc",                     RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.vault-token",                RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.mozilla/firefox",            RULE_CRED_USER,    RULE_CRED_USER },
    { "**/.config/google-chrome",       RULE_CRED_USER,    RULE_CRED_USER },
    { "/run/secrets",                   RULE_CRED_USER,    RULE_CRED_USER },
    { "/var/run/secrets",               RULE_CRED_USER,    RULE_CRED_USER },
    { "/usr/local",                     RULE_NONE,         RULE_NONE },
    { "/etc",                           RULE_NONE,         RULE_SYSTEM_WRITE },
    { "/boot",                          RULE_NONE,         RULE_SYSTEM_WRITE },
    { "/bin",                           RULE_NONE,         RULE_SYSTEM_WRITE },
    { "/sbin",                          RULE_NONE,         RULE_SYSTEM_WRITE },
    { "/lib*",                          RULE_NONE,         RULE_SYSTEM_WRITE },
    { "/usr",                           RULE_NONE,         RULE_SYSTEM_WRITE },
    { "/var/lib/dpkg",                  RULE_NONE,         RULE_SYSTEM_WRITE },
    { "/proc",                          RULE_NONE,         RULE_KERNEL_SETTING },
    /* clang-format on */
};

/* Half of the rules are tried at every slash; a glob is held against each as one of its own. */
static void spend_rules(struct analysis *an, const char *path, bool is_glob)
{
    size_t len = strlen(path), slashes = 0;

    for (size_t i = 0; i < len; i++)
        slashes += path[i] == '/';
    spend(an, 64 + slashes * 32 + (is_glob ? 64 + len * 16 : len));
}

enum rule path_rule(struct analysis *an, const char *path, bool is_glob, enum policy_access access)
{
    spend_rules(an, path, is_glob);
    for (size_t i = 0; i < ARRAY_LEN(path_rules); i++)
        if (path_meets(path_rules[i].pattern, path, is_glob))
            return access == POLICY_WRITE ? path_rules[i].on_write : path_rules[i].on_read;
    return RULE_NONE;
}

static const char *const system_trees[] = {
    "/bin",      "/boot",      "/dev", "/etc",     "/lib",     "/lib32",   "/lib64",   "/opt",
    "/proc",     "/sbin",      "/srv", "/sys",     "/usr",     "/usr/bin", "/usr/lib", "/usr/local",
    "/usr/sbin", "/usr/share", "/var", "/var/lib", "/var/log", "/run",
};

bool path_is_system_tree(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(system_trees); i++) {
        size_t len = strlen(system_trees[i]);

        /* The tree itself, or everything in it. */
        if (strncmp(path, system_trees[i], len) == 0 &&
            (!path[len] || !strcmp(path + len, "/*") || !strcmp(path + len, "/.*")))
            return true;
    }
    return false;
}

bool path_is_home(const struct policy *policy, const char *path)
{
    size_t len = strlen(policy->home);
    const char *rest;

    if (!strcmp(path, "/home") || !strcmp(path, "/home/*") || !strcmp(path, "/root") ||
        !strcmp(path, "/root/*"))
        return true;
    if (len && strncmp(path, policy->home, len) == 0 &&
        (!path[len] || !strcmp(path + len, "/*") || !strcmp(path + len, "/.*")))
        return true;
    if (strncmp(path, "/home/", 6) != 0)
        return false;
    rest = strchrnul(path + 6, '/');
    return !*rest || !strcmp(rest, "/*");
}
