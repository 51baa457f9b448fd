/* rules.h - every built-in rule: constant, id, risk, what it found.
 *
 * Callers: judge_*.c name the constants, the report and docs/policy.md show the ids. Ids are part of
 *          the API: they do not change meaning, and a rule that is dropped leaves its id unused.
 * Never:   decides. Whether a risk is allowed is the policy's. */
#ifndef COVE_POLICY_RULES_H
#define COVE_POLICY_RULES_H

#include <stdbool.h>
#include <stddef.h>

enum policy_risk {
    POLICY_RISK_NONE,
    POLICY_RISK_LOW,
    POLICY_RISK_MEDIUM,
    POLICY_RISK_HIGH,
    POLICY_RISK_CRITICAL,
    POLICY_RISK_COUNT
};

/* clang-format off */
#define POLICY_RULES(RULE) \
    RULE(RM_ROOT,         "destructive.rm-root",         CRITICAL, "removes the root of the file system") \
    RULE(RM_SYSTEM,       "destructive.rm-system",       CRITICAL, "removes a system directory") \
    RULE(RM_HOME,         "destructive.rm-home",         HIGH,     "removes a whole home directory") \
    RULE(RM_ALL,          "destructive.rm-all",          LOW,      "removes everything in the working directory") \
    RULE(RM_UNKNOWN,      "destructive.rm-unknown",      MEDIUM,   "removes recursively what is known only when it runs") \
    RULE(DISK_WRITE,      "disk.raw-write",              CRITICAL, "writes to a disk or to memory past the file system") \
    RULE(DISK_READ,       "disk.raw-read",               HIGH,     "reads a disk or memory past the file system") \
    RULE(DISK_FORMAT,     "disk.format",                 CRITICAL, "formats, partitions or wipes a disk") \
    RULE(SHRED,           "disk.shred",                  MEDIUM,   "overwrites files so that they cannot be recovered") \
    RULE(FORK_BOMB,       "process.fork-bomb",           CRITICAL, "starts copies of itself without end") \
    RULE(KILL_ALL,        "process.kill-all",            CRITICAL, "ends every process or the first one") \
    RULE(ROOT,            "privilege.root",              HIGH,     "asks for root or another user") \
    RULE(SETUID,          "privilege.setuid",            HIGH,     "makes a program run with its owner's rights") \
    RULE(CAPABILITIES,    "privilege.capabilities",      HIGH,     "gives a program capabilities") \
    RULE(CHOWN_ROOT,      "privilege.chown-root",        MEDIUM,   "hands files to root") \
    RULE(ACCOUNTS,        "privilege.accounts",          HIGH,     "changes users, groups or passwords") \
    RULE(ACCOUNT_FILES,   "privilege.account-files",     CRITICAL, "writes the files that decide who may log in or become root") \
    RULE(WORLD_WRITABLE,  "permissions.world-writable",  MEDIUM,   "lets everybody write a whole tree") \
    RULE(SYSTEM_MODE,     "permissions.system",          CRITICAL, "changes owner or mode of a whole system tree") \
    RULE(SYSTEM_WRITE,    "files.system-overwrite",      HIGH,     "writes or removes files of the system") \
    RULE(CRED_SYSTEM,     "credentials.system",          HIGH,     "touches the system's password files") \
    RULE(CRED_USER,       "credentials.user",            HIGH,     "touches keys or tokens of a user") \
    RULE(CRED_PROCESS,    "credentials.process",         HIGH,     "reads environment or memory of processes") \
    RULE(CRED_METADATA,   "credentials.metadata",        HIGH,     "asks a cloud's metadata service") \
    RULE(CRON,            "persistence.cron",            HIGH,     "installs a scheduled job") \
    RULE(STARTUP,         "persistence.shell-startup",   HIGH,     "writes what every new shell runs") \
    RULE(SERVICE,         "persistence.service",         HIGH,     "installs or enables a service") \
    RULE(AUTHORIZED_KEYS, "persistence.authorized-keys", CRITICAL, "lets a key log in") \
    RULE(SCHEDULE,        "persistence.schedule",        MEDIUM,   "runs something later, outside this command") \
    RULE(NETWORK,         "network.tool",                LOW,      "uses the network, which the policy leaves off") \
    RULE(UPLOAD,          "network.upload",              MEDIUM,   "sends a local file away") \
    RULE(EXFILTRATION,    "network.exfiltration",        CRITICAL, "sends credentials or the environment away") \
    RULE(REVERSE_SHELL,   "network.reverse-shell",       CRITICAL, "gives a shell to the network") \
    RULE(DEV_TCP,         "network.dev-tcp",             HIGH,     "opens a connection through the shell itself") \
    RULE(LISTEN,          "network.listen",              MEDIUM,   "listens for raw connections") \
    RULE(SCAN,            "network.scan",                MEDIUM,   "scans or captures a network") \
    RULE(TUNNEL,          "network.tunnel",              HIGH,     "opens a tunnel into the sandbox") \
    RULE(DOWNLOAD_RUN,    "execute.download",            HIGH,     "runs what was just downloaded") \
    RULE(ENCODED_RUN,     "execute.encoded",             HIGH,     "runs what was hidden by an encoding") \
    RULE(UNKNOWN_CODE,    "execute.unknown-code",        MEDIUM,   "runs code that is known only when it runs") \
    RULE(UNKNOWN_PROGRAM, "execute.unknown-program",     LOW,      "runs a program that is known only when it runs") \
    RULE(MODULE,          "kernel.module",               CRITICAL, "loads or removes kernel modules or kernels") \
    RULE(KERNEL_SETTING,  "kernel.parameters",           HIGH,     "changes settings of the kernel") \
    RULE(SYSRQ,           "kernel.sysrq",                CRITICAL, "triggers an emergency action of the kernel") \
    RULE(SHUTDOWN,        "system.shutdown",             HIGH,     "stops or restarts the machine") \
    RULE(PROTECTION_OFF,  "system.protection-off",       HIGH,     "turns off a protection of the system") \
    RULE(PRIVILEGED,      "container.privileged",        CRITICAL, "starts a container with the host's rights") \
    RULE(SOCKET,          "container.socket",            CRITICAL, "reaches for the socket of a container engine") \
    RULE(ESCAPE,          "container.escape",            CRITICAL, "uses a known escape from a container") \
    RULE(NAMESPACES,      "container.namespaces",        MEDIUM,   "makes namespaces or changes the root directory") \
    RULE(MOUNT,           "container.mount",             HIGH,     "mounts or unmounts file systems") \
    RULE(MINER,           "abuse.miner",                 CRITICAL, "mines a currency") \
    RULE(TAMPER,          "logs.tamper",                 HIGH,     "removes traces from logs or the shell history") \
    RULE(PRELOAD,         "environment.preload",         HIGH,     "makes programs load or run other code") \
    RULE(PATH_HIJACK,     "environment.path",            MEDIUM,   "changes where programs are found") \
    RULE(BLACKLIST,       "policy.command-blacklist",    HIGH,     "matches the policy's command blacklist") \
    RULE(WHITELIST,       POLICY_WHITELIST_RULE,    HIGH,     "is not on the policy's command whitelist") \
    RULE(BLOCKED_PATH,    "policy.blocked-path",         HIGH,     "names a path that the policy blocks") \
    RULE(BLOCKED_TOOL,    "policy.blocked-tool",         HIGH,     "is a tool that the policy blocks") \
    RULE(REGEX_FAILED,    "policy.regex-failed",         HIGH,     "could not be compared with the policy's patterns") \
    RULE(UNPARSED,        "analysis.unparsed",           LOW,      "could not be parsed as a whole") \
    RULE(TOO_COMPLEX,     "analysis.too-complex",        HIGH,     "is too large or too deep to be understood")
/* clang-format on */

enum rule {
    RULE_NONE,
#define RULE(name, id, risk, text) RULE_##name,
    POLICY_RULES(RULE)
#undef RULE
        RULE_COUNT
};

struct policy_rule {
    const char *id;
    enum policy_risk risk;
    const char *description;
    bool always_denies; /* the policy itself said no: its max_risk does not matter */
};

/* policy_rules[RULE_NONE] is empty; a NULL id is no rule. */
extern const struct policy_rule policy_rules[RULE_COUNT];

/* RULE_NONE: no such id. */
enum rule policy_rule_find(const char *id);

const char *policy_risk_name(enum policy_risk risk);
/* POLICY_RISK_COUNT: no such name. */
enum policy_risk policy_risk_find(const char *name);

#endif
