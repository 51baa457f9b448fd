/* The store has one writer; and its copy for a backup. */
#include "base/own.h"
#include "store/store.h"

#include "check.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char state[64];
static struct store *store;
static struct err err;

static void begin(void)
{
    (void) strcpy(state, "/tmp/cove-store.XXXXXX");
    if (!mkdtemp(state))
        exit(1);
    CHECK(store_open(state, &store, &err) == 0);
}

static void end(void)
{
    char command[128];

    store_close(store);
    (void) snprintf(command, sizeof command, "rm -rf %s", state);
    IGNORE(system(command));
}

static bool is_there(const char *name)
{
    char path[128];
    struct stat st;

    (void) snprintf(path, sizeof path, "%s/server/%s", state, name);
    return stat(path, &st) == 0;
}

/* In another process: 0 if the store opens there, else the kind of the error. */
static int open_elsewhere(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct store *second;
        struct err why;

        _exit(store_open(state, &second, &why) == 0 ? 0 : (int) why.kind);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_second_process_cannot_open_the_store(void)
{
    begin();
    CHECK_INT(open_elsewhere(), ERR_STATE);
    store_close(store);
    CHECK_INT(open_elsewhere(), 0);
    CHECK(store_open(state, &store, &err) == 0);
    end();
}

static void the_lock_keeps_the_store_closed_without_opening_it(void)
{
    int fd = -1;

    begin();
    store_close(store);
    CHECK(store_lock(state, &fd, &err) == 0);
    CHECK_INT(open_elsewhere(), ERR_STATE);
    (void) close(fd);
    CHECK_INT(open_elsewhere(), 0);
    CHECK(store_open(state, &store, &err) == 0);
    end();
}

static void a_process_may_take_the_lock_before_it_opens_the_store(void)
{
    struct store *second = NULL;
    int fd = -1;

    begin();
    store_close(store);
    CHECK(store_lock(state, &fd, &err) == 0);
    CHECK(store_open(state, &second, &err) == 0);
    CHECK_INT(open_elsewhere(), ERR_STATE);
    store = second;
    end();
    (void) close(fd);
}

static void a_copy_is_whole_and_stands_alone(void)
{
    char path[128];
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = NULL;

    begin();
    CHECK(store_copy(store, &err) == 0);
    CHECK(store_copy(store, &err) == 0); /* in the place of the one before */
    CHECK(is_there(STORE_COPY) && !is_there(STORE_COPY "-journal") && !is_there(STORE_COPY "-wal"));
    (void) snprintf(path, sizeof path, "%s/server/" STORE_COPY, state);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
    CHECK(sqlite3_prepare_v2(db, "SELECT count(*) FROM tenants", -1, &stmt, NULL) == SQLITE_OK);
    CHECK(sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0) == 1);
    (void) sqlite3_finalize(stmt);
    (void) sqlite3_close(db);
    end();
}

/* A process that was killed while it copied leaves half a file, and its journal. */
static void what_a_killed_copy_left_goes_with_the_next_open(void)
{
    char command[256];

    begin();
    store_close(store);
    (void) snprintf(command, sizeof command,
                    "echo half >%s/server/" STORE_COPY "; echo half >%s/server/" STORE_COPY
                    "-journal",
                    state, state);
    IGNORE(system(command));
    CHECK(is_there(STORE_COPY "-journal"));
    CHECK(store_open(state, &store, &err) == 0);
    CHECK(!is_there(STORE_COPY) && !is_there(STORE_COPY "-journal"));
    end();
}

CHECK_MAIN(T(a_second_process_cannot_open_the_store),
           T(the_lock_keeps_the_store_closed_without_opening_it),
           T(a_process_may_take_the_lock_before_it_opens_the_store),
           T(a_copy_is_whole_and_stands_alone), T(what_a_killed_copy_left_goes_with_the_next_open))
