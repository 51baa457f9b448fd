/* keeper_tie STATE SANDBOX - ties a sandbox to itself, says so, and waits to be killed. */
#include "client/sandbox.h"

#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct link link;
    struct err err;

    if (argc != 3)
        return 2;
    if (link_open(&link, argv[1], &err) < 0 || sandbox_tie(&link, argv[2], &err) < 0) {
        (void) fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    (void) puts("tied");
    (void) fflush(stdout);
    for (;;)
        (void) pause();
}
