/* What is in the file, and what is on the disk, when a function that writes returns. */
#include "base/own.h"
#include "store/store.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ID(c) "i" c c c c c c c c c c c c c c c c c c c c

static char state[64];
static struct store *store;
static struct err err;

static atomic_int syncs;        /* of the journal, by the store itself */
static atomic_int sync_errno;   /* such a sync fails with it */
static atomic_bool syncs_stand; /* such a sync waits */

/* SQLite's own descriptor of the journal can be written; the store's is for reading. */
static bool is_ours(int fd)
{
    char link[32], path[256];
    ssize_t n;

    (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path);
    return n > 4 && memcmp(path + n - 4, "-wal", 4) == 0 &&
           (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

/* In libc's place. */
int fdatasync(int fd)
{
    const struct timespec moment = { .tv_nsec = 1000000 };

    if (is_ours(fd)) {
        atomic_fetch_add(&syncs, 1);
        while (atomic_load(&syncs_stand))
            (void) nanosleep(&moment, NULL);
        if (atomic_load(&sync_errno)) {
            errno = atomic_load(&sync_errno);
            return -1;
        }
    }
    return (int) syscall(SYS_fdatasync, fd);
}

static void open_store(void)
{
    if (store_open(state, &store, &err) < 0) {
        printf("not ok - a store opens: %s\n", err.msg);
        exit(1);
    }
}

/* With everything from before on the disk, and the thread of the store idle. */
static void begin(void)
{
    (void) strcpy(state, "/tmp/cove-writer.XXXXXX");
    if (!mkdtemp(state))
        exit(1);
    open_store();
    CHECK(store_audit_flush(store, &err) == 0);
    atomic_store(&syncs, 0);
}

static void end(void)
{
    char command[128];

    store_close(store);
    store = NULL;
    (void) snprintf(command, sizeof command, "rm -rf %s", state);
    IGNORE(system(command));
}

static bool within_10s(bool (*holds)(void))
{
    const struct timespec moment = { .tv_nsec = 5000000 };

    for (int i = 0; i < 2000; i++) {
        if (holds())
            return true;
        (void) nanosleep(&moment, NULL);
    }
    return false;
}

static bool synced(void)
{
    return atomic_load(&syncs) > 0;
}

static bool in_trouble(void)
{
    char text[ERR_MSG_MAX];

    return store_trouble(store, text, sizeof text);
}

static bool out_of_trouble(void)
{
    return !in_trouble();
}

static int add_sandbox(const char *id)
{
    struct store_sandbox s = { .tenant = STORE_LOCAL_TENANT, .template = "host" };

    (void) strcpy(s.id, id);
    return store_sandbox_add(store, &s, &err);
}

static int add_tenant(const char *name)
{
    struct store_quotas quotas;

    store_quotas_default(&quotas);
    return store_tenant_add(store, name, &quotas, &err);
}

static int append(enum store_safety safety)
{
    struct audit_record record = { .tenant = "local",
                                   .user_id = "local",
                                   .action = "sandbox.create",
                                   .outcome = "ok",
                                   .duration_ms = -1,
                                   .exit_code = AUDIT_NO_EXIT };

    return store_audit_append(store, &record, safety, &err);
}

static void what_lasts_is_on_disk_when_it_is_answered(void)
{
    begin();
    CHECK(add_tenant("one") == 0);
    CHECK_INT(atomic_load(&syncs), 1);
    CHECK(append(STORE_ON_DISK) == 0);
    CHECK(atomic_load(&syncs) >= 2);
    end();
}

static void a_sandbox_does_not_wait_for_the_disk_and_reaches_it(void)
{
    begin();
    atomic_store(&syncs_stand, true);
    CHECK(add_sandbox(ID("a")) == 0);
    CHECK(append(STORE_WRITTEN) == 0);
    CHECK(within_10s(synced)); /* the store's own thread, which stands still now */
    CHECK(add_sandbox(ID("b")) == 0);
    CHECK(store_sandbox_set_deadline(store, ID("a"), 5, 0, &err) == 0);
    CHECK(store_sandbox_remove(store, ID("b"), &err) == 0);
    CHECK_INT(atomic_load(&syncs), 1);
    atomic_store(&syncs_stand, false);
    end();
}

static void a_sandbox_that_goes_to_disk_waits_for_it(void)
{
    const struct store_sleep sleep = { .tier = STORE_DISK };
    int before;

    begin();
    CHECK(add_sandbox(ID("a")) == 0);
    CHECK(store_audit_flush(store, &err) == 0);
    before = atomic_load(&syncs);
    CHECK(before > 0);
    CHECK(store_sandbox_set_sleep(store, ID("a"), &sleep, &err) == 0);
    CHECK_INT(atomic_load(&syncs), before + 1);
    end();
}

static void a_flush_brings_along_what_was_only_written(void)
{
    begin();
    atomic_store(&syncs_stand, true);
    CHECK(add_sandbox(ID("a")) == 0);
    CHECK(within_10s(synced));
    CHECK(add_sandbox(ID("b")) == 0); /* behind the sync that is under way */
    atomic_store(&syncs_stand, false);
    CHECK(store_audit_flush(store, &err) == 0);
    CHECK(atomic_load(&syncs) >= 2);
    end();
}

static void a_disk_that_cannot_be_reached_is_said(void)
{
    struct store_tenant tenant;

    begin();
    atomic_store(&sync_errno, ENOSPC);
    CHECK(add_tenant("one") == -1);
    CHECK_INT(err.kind, ERR_DISK_FULL);
    CHECK(append(STORE_ON_DISK) == -1);
    CHECK(append(STORE_WRITTEN) == 0);
    CHECK(within_10s(in_trouble));
    CHECK(store_tenant_get(store, STORE_LOCAL_TENANT, &tenant, &err) == 0);
    atomic_store(&sync_errno, 0);
    CHECK(within_10s(out_of_trouble)); /* without anybody writing */
    CHECK(add_tenant("two") == 0);
    end();
}

static void what_was_written_survives_a_kill(void)
{
    struct store_sandbox found;
    struct audit_chain chain;
    int status = 0, tell[2];
    char byte;
    pid_t pid;

    begin();
    store_close(store);
    CHECK(pipe(tell) == 0);
    pid = fork();
    if (pid == 0) {
        atomic_store(&syncs_stand, true);
        (void) alarm(60);
        open_store();
        if (add_sandbox(ID("a")) == 0 && append(STORE_WRITTEN) == 0)
            IGNORE(write(tell[1], "y", 1));
        (void) pause();
        _exit(1);
    }
    (void) close(tell[1]);
    CHECK(read(tell[0], &byte, 1) == 1);
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    (void) close(tell[0]);
    open_store();
    CHECK(store_sandbox_get(store, NULL, ID("a"), &found, &err) == 0);
    CHECK(store_audit_verify(store, &chain, &err) == 0);
    CHECK_INT(chain.count, 1);
    CHECK_INT(chain.broken_at, 0);
    end();
}

#define THREADS 8
#define EACH    50

static void *write_some(void *arg)
{
    struct err own;
    char id[] = ID("a");

    id[1] = (char) ('a' + (intptr_t) arg);
    for (int i = 0; i < EACH; i++) {
        struct audit_record record = { .tenant = "local",
                                       .user_id = "local",
                                       .action = "x",
                                       .outcome = "ok",
                                       .exit_code = AUDIT_NO_EXIT };
        struct store_sandbox s = { .tenant = STORE_LOCAL_TENANT, .template = "host" };

        (void) strcpy(s.id, id);
        if (store_sandbox_add(store, &s, &own) < 0 ||
            store_audit_append(store, &record, (enum store_safety)(i % 3), &own) < 0 ||
            store_sandbox_remove(store, id, &own) < 0)
            return (void *) 1;
    }
    return NULL;
}

static void those_who_come_together_lose_nothing(void)
{
    struct audit_chain chain;
    pthread_t threads[THREADS];

    begin();
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, write_some, (void *) i) == 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *bad = NULL;

        CHECK(pthread_join(threads[i], &bad) == 0 && !bad);
    }
    CHECK(store_audit_verify(store, &chain, &err) == 0);
    CHECK_INT(chain.count, THREADS * EACH);
    CHECK_INT(chain.broken_at, 0);
    end();
}

CHECK_MAIN(T(what_lasts_is_on_disk_when_it_is_answered),
           T(a_sandbox_does_not_wait_for_the_disk_and_reaches_it),
           T(a_sandbox_that_goes_to_disk_waits_for_it),
           T(a_flush_brings_along_what_was_only_written), T(a_disk_that_cannot_be_reached_is_said),
           T(what_was_written_survives_a_kill), T(those_who_come_together_lose_nothing))
