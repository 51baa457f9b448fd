/* spawn.h - a command from a request: its argv, environment, directory, user; and the child's way
 * to exec.
 *
 * spawn_prepare runs in the agent and allocates; spawn_child runs in a child that shares its
 * parent's memory until exec (CLONE_VM | CLONE_VFORK), so it allocates nothing and reports failure
 * in *err.
 *
 * Callers: start.c prepares, shepherd.c runs. */
#ifndef COVE_AGENT_CORE_SPAWN_H
#define COVE_AGENT_CORE_SPAWN_H

#include "agent/core/user.h"
#include "wire/agent.h"

struct spawn {
    struct user user;
    bool root_profile;
    bool pty;
    bool own_cwd;    /* cwd was asked for: failing to enter it is an error */
    const char *cwd; /* borrowed from the request or the agent */
    char **argv, **envp;
    bool shell;  /* argv[0] is the user's shell: /bin/sh steps in when it cannot run */
    char *texts; /* owned: strings of our own in argv and envp */
    int stdio[3];
    uint64_t open_files; /* as in struct spawn_base */
};

/* What the agent knows about commands in general. */
struct spawn_base {
    bool root_profile;
    char **env;          /* of the template */
    const char *user;    /* its user */
    const char *workdir; /* for that user; "": home */
    /* How many processors the sandbox has, by what it sees as /sys; SPAWN_CORES_ALL: as many as the kernel says;
     * 0: not looked yet. */
    unsigned cores;
    uint64_t open_files; /* that each process of a command may have; 0: as the agent */
};
#define SPAWN_CORES_ALL (~0u)

/* Looks, unless that was done. */
void spawn_learn_cores(struct spawn_base *base);
/* Pure: of the text of /sys/devices/system/cpu/online, "0" or "0-3"; 0: it is neither. */
unsigned spawn_parse_cores(const char *text);

/* The request's memory is borrowed until spawn_done. */
int spawn_prepare(struct spawn *spawn, const struct spawn_base *base,
                  const struct agent_request *request, const struct user *user, struct err *err);
void spawn_done(struct spawn *spawn);

/* In the child, stdio in place: never returns when it worked. */
void spawn_child(const struct spawn *spawn, struct err *err);

#endif
