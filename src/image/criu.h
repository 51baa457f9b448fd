/* criu.h - one dump or restore by criu, through its own protocol ("swrk": requests on a socket it is started with).
 *
 * criu parses images as root, so it is only ever given what image.c has authenticated. It runs as a child of the
 * caller, in the caller's mount namespace, with the sandbox's host id and all capabilities.
 *
 * Callers: save.c and loader.c, in processes of their own: criu_run waits. */
#ifndef COVE_IMAGE_CRIU_H
#define COVE_IMAGE_CRIU_H

#include "base/err.h"
#include "jail/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CRIU_EXTERNALS_MAX 24
#define CRIU_TEXT_MAX      160
#define CRIU_SKIPS_MAX     64

struct criu {
    int ids_fd;  /* src/criu/shim.c, as a shared object */
    int uffd_fd; /* /dev/userfaultfd, for fill.c; -1: none */
};

/* One that was started, and waits for what it is to do. */
struct criu_process {
    pid_t pid; /* 0: none */
    int sock;
};
#define CRIU_NONE ((struct criu_process){ .sock = -1 })

struct criu_job {
    const struct criu *criu;
    struct criu_process *process; /* from criu_start; NULL: criu_run starts one */
    bool restore;
    bool lazy;          /* restore: pages that can come later are left out, fill.c brings them */
    bool leave_running; /* dump: the processes continue afterwards */
    pid_t pid;          /* dump: whose tree */
    uint32_t owner;     /* host id of the sandbox */
    int images_fd;      /* directory of criu's files */
    int work_fd;        /* directory of its log */
    int lock_fd; /* the image's: criu holds it as long as it lives, also when its parent is gone */
    const char *freezer;               /* dump: the sandbox's freezer directory; NULL: none */
    const char *root;                  /* restore: where the root is attached */
    const struct cgroup_entry *cgroup; /* restore: where the processes are to be */
    size_t external_count;
    char external[CRIU_EXTERNALS_MAX][CRIU_TEXT_MAX]; /* mounts that are not its business */
    size_t skip_count;
    const char *skip[CRIU_SKIPS_MAX]; /* dump: mounts to leave out; of the caller */
    /* criu waits at certain points: "post-dump", "setup-namespaces", "post-restore" … -1: it shall undo all. */
    int (*reached)(void *arg, const char *point, pid_t pid, struct err *err);
    void *arg;
};

/* What criu says, as far as it is of interest. Pure; what is not understood is left out. */
struct criu_response {
    uint64_t type, success;
    pid_t pid;
    char point[64];
};
void criu_parse_response(const uint8_t *data, size_t len, struct criu_response *ret);

/* Is there one? */
bool criu_there(void);

/* It takes a few milliseconds to be ready, which need not be waited for: of the job, it needs criu, owner, lock_fd and
 * cgroup. It is given nothing to read before criu_run. */
int criu_start(const struct criu_job *job, struct criu_process *ret, struct err *err);
/* Of one that was not asked for anything; accepts CRIU_NONE. */
void criu_stop(struct criu_process *process);

/* Done, and the pid of a restored tree's root; or -1, and the processes of a dump continue. The process is used up. ERR_TIMEOUT: it
 * hung, and was killed: of a dump, the processes are not as they were, and must not continue. */
int criu_run(const struct criu_job *job, pid_t *ret_pid, struct err *err);

#endif
