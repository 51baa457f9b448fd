#include "jail/creds.h"

#include "base/log.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BACK_TRIES 200
#define BACK_US    1000

/* A change of ids away from 0 drops capabilities from the effective set; permitted ones can be raised. */
static int raise_capabilities(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];

    if (syscall(__NR_capget, &head, data) < 0)
        return -1;
    data[0].effective = data[0].permitted;
    data[1].effective = data[1].permitted;
    return (int) syscall(__NR_capset, &head, data);
}

void creds_files(uint32_t id)
{
    (void) syscall(__NR_setfsgid, id);
    (void) syscall(__NR_setfsuid, id);
    (void) raise_capabilities();
}

static int change_owner(uint32_t id)
{
    if (syscall(__NR_setresuid, -1, id, -1) < 0)
        return -1;
    (void) syscall(__NR_setfsuid, 0);
    return raise_capabilities();
}

int creds_owner(uint32_t id, struct err *err)
{
    int rc = change_owner(id);

    /* The way back needs a little memory, which may be there in a moment. */
    for (int tries = 0; rc < 0 && id == 0 && tries < BACK_TRIES; tries++) {
        (void) usleep(BACK_US);
        rc = change_owner(id);
    }
    if (rc < 0 && id == 0) {
        log_line(LOG_ERROR, "cannot become root again: %s", strerror(errno));
        _exit(1);
    }
    return rc < 0 ? err_sys(err, errno, "become the owner of a user namespace") : 0;
}
