#include "template/image_store.h"

#include "base/own.h"
#include "check.h"
#include "template/tree.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 1000

/* Imports that begin, and so clear away what makers that died left. */
static _Noreturn void begin_for_ever(int templates_fd)
{
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        struct image_store store;
        struct err err;

        if (image_store_open(&store, templates_fd, &err) == 0)
            image_store_close(&store);
    }
}

/* A file is there for a moment before its maker has it locked. */
static void a_file_that_is_begun_stays_while_others_begin(void)
{
    char dir[] = "/tmp/image_store_test.XXXXXX";
    auto_close int templates_fd = -1;
    struct err err = { 0 };
    int lost = 0;
    pid_t other;

    CHECK(mkdtemp(dir) != NULL);
    templates_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    other = fork();
    if (other == 0)
        begin_for_ever(templates_fd);
    for (int i = 0; i < ROUNDS && lost == 0 && err.kind == ERR_NONE; i++) {
        struct image_store store;
        struct stat st;

        if (image_store_open(&store, templates_fd, &err) == 0 &&
            image_store_begin(&store, &err) == 0 && image_store_begin(&store, &err) == 0)
            for (size_t file = 0; file < 2; file++)
                lost += fstat(store.new_fd[file], &st) < 0 || st.st_nlink != 1;
        image_store_close(&store);
    }
    CHECK_STR(err.msg, "");
    CHECK_INT(lost, 0);
    (void) kill(other, SIGKILL);
    (void) waitpid(other, NULL, 0);
    CHECK(tree_remove(AT_FDCWD, dir, &err) == 0);
}

CHECK_MAIN(T(a_file_that_is_begun_stays_while_others_begin))
