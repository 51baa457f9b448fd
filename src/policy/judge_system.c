/* Rules on the machine itself: disks, users, services, kernel, processes, containers, traces. */
#include "policy/judge.h"

#include "base/own.h"
#include "policy/paths.h"

#include <string.h>

/* Programs whose use says it all, unless one of the harmless options is there. */
static const struct {
    const char *name;
    enum rule rule;
    const char *harmless; /* an option or operand that only looks; NULL: none */
} programs[] = {
    /* clang-format off */
    { "mke2fs",      RULE_DISK_FORMAT,  NULL },       { "mkswap",      RULE_DISK_FORMAT,  NULL },
    { "mkfs",        RULE_DISK_FORMAT,  NULL },       { "mkdosfs",     RULE_DISK_FORMAT,  NULL },
    { "wipefs",      RULE_DISK_FORMAT,  NULL },       { "fdisk",       RULE_DISK_FORMAT,  "-l" },
    { "sfdisk",      RULE_DISK_FORMAT,  "-l" },       { "cfdisk",      RULE_DISK_FORMAT,  NULL },
    { "sgdisk",      RULE_DISK_FORMAT,  "-p" },       { "gdisk",       RULE_DISK_FORMAT,  "-l" },
    { "parted",      RULE_DISK_FORMAT,  "-l" },       { "blkdiscard",  RULE_DISK_FORMAT,  NULL },
    { "pvcreate",    RULE_DISK_FORMAT,  NULL },       { "vgremove",    RULE_DISK_FORMAT,  NULL },
    { "lvremove",    RULE_DISK_FORMAT,  NULL },       { "hdparm",      RULE_DISK_FORMAT,  "-I" },
    { "shred",       RULE_SHRED,        NULL },       { "srm",         RULE_SHRED,        NULL },
    { "wipe",        RULE_SHRED,        NULL },       { "debugfs",     RULE_DISK_READ,    NULL },
    { "sudo",        RULE_ROOT,         NULL },       { "doas",        RULE_ROOT,         NULL },
    { "su",          RULE_ROOT,         NULL },       { "pkexec",      RULE_ROOT,         NULL },
    { "runuser",     RULE_ROOT,         NULL },       { "sudoedit",    RULE_ROOT,         NULL },
    { "setcap",      RULE_CAPABILITIES, NULL },       { "useradd",     RULE_ACCOUNTS,     NULL },
    { "adduser",     RULE_ACCOUNTS,     NULL },       { "usermod",     RULE_ACCOUNTS,     NULL },
    { "userdel",     RULE_ACCOUNTS,     NULL },       { "deluser",     RULE_ACCOUNTS,     NULL },
    { "groupadd",    RULE_ACCOUNTS,     NULL },       { "gpasswd",     RULE_ACCOUNTS,     NULL },
    { "passwd",      RULE_ACCOUNTS,     NULL },       { "chpasswd",    RULE_ACCOUNTS,     NULL },
    { "visudo",      RULE_ACCOUNTS,     NULL },       { "vipw",        RULE_ACCOUNTS,     NULL },
    { "chsh",        RULE_ACCOUNTS,     NULL },       { "crontab",     RULE_CRON,         "-l" },
    { "at",          RULE_SCHEDULE,     "-l" },       { "batch",       RULE_SCHEDULE,     NULL },
    { "systemd-run", RULE_SCHEDULE,     NULL },       { "update-rc.d", RULE_SERVICE,      NULL },
    { "chkconfig",   RULE_SERVICE,      "--list" },   { "insmod",      RULE_MODULE,       NULL },
    { "modprobe",    RULE_MODULE,       "-n" },       { "rmmod",       RULE_MODULE,       NULL },
    { "kexec",       RULE_MODULE,       NULL },       { "shutdown",    RULE_SHUTDOWN,     NULL },
    { "reboot",      RULE_SHUTDOWN,     NULL },       { "halt",        RULE_SHUTDOWN,     NULL },
    { "poweroff",    RULE_SHUTDOWN,     NULL },       { "telinit",     RULE_SHUTDOWN,     NULL },
    { "killall5",    RULE_KILL_ALL,     NULL },       { "nsenter",     RULE_ESCAPE,       NULL },
    { "unshare",     RULE_NAMESPACES,   NULL },       { "chroot",      RULE_NAMESPACES,   NULL },
    { "pivot_root",  RULE_MOUNT,        NULL },       { "umount",      RULE_MOUNT,        NULL },
    { "losetup",     RULE_MOUNT,        "-a" },       { "swapoff",     RULE_MOUNT,        NULL },
    { "swapon",      RULE_MOUNT,        "--show" },   { "fusermount",  RULE_MOUNT,        NULL },
    { "xmrig",       RULE_MINER,        NULL },       { "minerd",      RULE_MINER,        NULL },
    { "cpuminer",    RULE_MINER,        NULL },       { "ethminer",    RULE_MINER,        NULL },
    { "cgminer",     RULE_MINER,        NULL },       { "bfgminer",    RULE_MINER,        NULL },
    { "nbminer",     RULE_MINER,        NULL },       { "t-rex",       RULE_MINER,        NULL },
    { "phoenixminer", RULE_MINER,       NULL },       { "xmr-stak",    RULE_MINER,        NULL },
    { "lolminer",    RULE_MINER,        NULL },       { "nanominer",   RULE_MINER,        NULL },
    /* clang-format on */
};

/* Programs with words that say it: any of the rows' words among the arguments. */
static const struct {
    const char *name;
    enum rule rule;
    const char *word; /* a trailing '*' matches any rest */
} words[] = {
    /* clang-format off */
    { "systemctl",  RULE_SERVICE,        "enable" },     { "systemctl",  RULE_SERVICE,        "link" },
    { "systemctl",  RULE_SERVICE,        "edit" },       { "systemctl",  RULE_SHUTDOWN,       "reboot" },
    { "systemctl",  RULE_SHUTDOWN,       "poweroff" },   { "systemctl",  RULE_SHUTDOWN,       "halt" },
    { "systemctl",  RULE_SHUTDOWN,       "kexec" },      { "systemctl",  RULE_SHUTDOWN,       "rescue" },
    { "systemctl",  RULE_SHUTDOWN,       "emergency" },
    { "systemctl",  RULE_PROTECTION_OFF, "auditd*" },    { "systemctl",  RULE_PROTECTION_OFF, "firewalld*" },
    { "systemctl",  RULE_PROTECTION_OFF, "apparmor*" },  { "systemctl",  RULE_PROTECTION_OFF, "ufw*" },
    { "systemctl",  RULE_PROTECTION_OFF, "rsyslog*" },
    { "init",       RULE_SHUTDOWN,       "0" },          { "init",       RULE_SHUTDOWN,       "6" },
    { "kmod",       RULE_MODULE,         "load" },       { "kmod",       RULE_MODULE,         "insert" },
    { "sysctl",     RULE_KERNEL_SETTING, "-w" },         { "sysctl",     RULE_KERNEL_SETTING, "*=*" },
    { "sysctl",     RULE_KERNEL_SETTING, "-p*" },        { "sysctl",     RULE_KERNEL_SETTING, "--system" },
    { "cryptsetup", RULE_DISK_FORMAT,    "luksFormat" }, { "cryptsetup", RULE_DISK_FORMAT,    "luksErase" },
    { "history",    RULE_TAMPER,         "-c*" },        { "history",    RULE_TAMPER,         "-d*" },
    { "history",    RULE_TAMPER,         "-w" },         { "journalctl", RULE_TAMPER,         "--vacuum*" },
    { "dmesg",      RULE_TAMPER,         "-C" },         { "dmesg",      RULE_TAMPER,         "-c" },
    { "set",        RULE_TAMPER,         "history" },    { "wevtutil",   RULE_TAMPER,         "cl" },
    { "setenforce", RULE_PROTECTION_OFF, "0" },          { "setenforce", RULE_PROTECTION_OFF, "Permissive" },
    { "ufw",        RULE_PROTECTION_OFF, "disable" },    { "ufw",        RULE_PROTECTION_OFF, "reset" },
    { "iptables",   RULE_PROTECTION_OFF, "-F*" },        { "iptables",   RULE_PROTECTION_OFF, "--flush" },
    { "ip6tables",  RULE_PROTECTION_OFF, "-F*" },        { "nft",        RULE_PROTECTION_OFF, "flush" },
    { "iptables",   RULE_PROTECTION_OFF, "ACCEPT" },     { "auditctl",   RULE_PROTECTION_OFF, "-D" },
    { "auditctl",   RULE_PROTECTION_OFF, "-e" },         { "auditctl",   RULE_PROTECTION_OFF, "-e0" },
    { "aa-teardown", RULE_PROTECTION_OFF, "*" },
    { "docker",     RULE_PRIVILEGED,     "--privileged*" }, { "podman",   RULE_PRIVILEGED,    "--privileged*" },
    { "nerdctl",    RULE_PRIVILEGED,     "--privileged*" }, { "lxc",      RULE_PRIVILEGED,    "security.privileged=true" },
    { "docker",     RULE_PRIVILEGED,     "--pid=host" }, { "podman",     RULE_PRIVILEGED,     "--pid=host" },
    { "docker",     RULE_PRIVILEGED,     "/:/*" },       { "podman",     RULE_PRIVILEGED,     "/:/*" },
    { "docker",     RULE_PRIVILEGED,     "--volume=/:*" },
    { "docker",     RULE_PRIVILEGED,     "-v/:*" },      { "docker",     RULE_PRIVILEGED,     "*source=/,*" },
    { "docker",     RULE_PRIVILEGED,     "--cap-add=ALL" }, { "docker",  RULE_PRIVILEGED,     "--cap-add=SYS_*" },
    { "docker",     RULE_PRIVILEGED,     "SYS_ADMIN" },  { "podman",     RULE_PRIVILEGED,     "SYS_ADMIN" },
    { "docker",     RULE_PRIVILEGED,     "*=unconfined" }, { "podman",   RULE_PRIVILEGED,     "*=unconfined" },
    { "docker",     RULE_SOCKET,         "*docker.sock*" }, { "podman",  RULE_SOCKET,         "*docker.sock*" },
    { "kubectl",    RULE_PRIVILEGED,     "--privileged*" },
    /* clang-format on */
};

/* kill: 1 is the first process, -1 all of them. A first "-N" is a signal. */
static void kill_(struct analysis *an, const struct command *c)
{
    bool signal_seen = false;

    for (size_t i = 1; i < c->argc; i++) {
        const char *arg = c->argv[i].text;

        if (!signal_seen && *arg == '-') {
            signal_seen = true;
            if (!strcmp(arg, "-s") || !strcmp(arg, "-n"))
                i++;
            continue;
        }
        signal_seen = true;
        if (!strcmp(arg, "1") || !strcmp(arg, "-1"))
            violate(an, RULE_KILL_ALL, c->at, c->shown);
    }
}

static void pkill(struct analysis *an, const struct command *c)
{
    static const char *const everything[] = { ".", ".*", "", "*", "init", "systemd", "^" };
    const struct field *name;

    if (command_has(c, "-1"))
        violate(an, RULE_KILL_ALL, c->at, c->shown);
    for (size_t i = 0; (name = command_operand(c, i)); i++)
        for (size_t k = 0; k < ARRAY_LEN(everything); k++)
            if (strcmp(name->text, everything[k]) == 0)
                violate(an, RULE_KILL_ALL, c->at, c->shown);
}

static void mount(struct analysis *an, const struct command *c)
{
    if (command_operand(c, 0) || command_flag(c, 'a', "all"))
        violate(an, RULE_MOUNT, c->at, c->shown);
}

static const struct {
    const char *name;
    void (*judge)(struct analysis *an, const struct command *c);
} judges[] = {
    { "kill", kill_ },
    { "pkill", pkill },
    { "killall", pkill },
    { "mount", mount },
};

static bool any_argument(const struct command *c, const char *pattern)
{
    for (size_t i = 1; i < c->argc; i++)
        if (glob_match(pattern, c->argv[i].text))
            return true;
    return false;
}

/* Only as the first argument: behind it, --help may be the value of an option, or meant for the program that sudo runs. */
static bool asks_for_help(const struct command *c)
{
    return c->argc > 1 &&
           (!strcmp(c->argv[1].text, "--help") || !strcmp(c->argv[1].text, "--version"));
}

static bool is_waived_root(const struct analysis *an, enum rule rule)
{
    return rule == RULE_ROOT && an->policy->allow_root;
}

void judge_system(struct analysis *an, const struct command *c)
{
    for (size_t i = 0; i < ARRAY_LEN(programs); i++)
        if (strcmp(c->name, programs[i].name) == 0 && !is_waived_root(an, programs[i].rule) &&
            !(programs[i].harmless && command_has(c, programs[i].harmless)) && !asks_for_help(c))
            violate(an, programs[i].rule, c->at, c->shown);
    if (strncmp(c->name, "mkfs.", 5) == 0)
        violate(an, RULE_DISK_FORMAT, c->at, c->shown);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(c->name, words[i].name) == 0 && any_argument(c, words[i].word)) {
            /* "systemctl status auditd" only looks */
            if (words[i].rule == RULE_PROTECTION_OFF && strcmp(c->name, "systemctl") == 0 &&
                !command_has(c, "stop") && !command_has(c, "disable") && !command_has(c, "mask"))
                continue;
            violate(an, words[i].rule, c->at, c->shown);
        }
    for (size_t i = 0; i < ARRAY_LEN(judges); i++)
        if (strcmp(c->name, judges[i].name) == 0)
            judges[i].judge(an, c);
    if (any_argument(c, "stratum+*") || any_argument(c, "--donate-level*"))
        violate(an, RULE_MINER, c->at, c->shown);
}

const char *judge_known_program(const char *pattern)
{
    static const char *const others[] = { "rm",    "bash",  "sh",   "dd",   "cat",    "chmod",
                                          "chown", "curl",  "wget", "nc",   "python", "perl",
                                          "kill",  "mount", "find", "eval", "docker" };
    static const char *const places[] = { "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "" };
    size_t other_count = ARRAY_LEN(others);

    for (size_t i = 0; i < other_count + ARRAY_LEN(programs); i++) {
        const char *name = i < other_count ? others[i] : programs[i - other_count].name;

        for (size_t k = 0; k < ARRAY_LEN(places); k++) {
            char path[64] = "";

            strncat(path, places[k], 16);
            strncat(path, name, 40);
            if (glob_match(pattern, path))
                return name;
        }
    }
    return NULL;
}
