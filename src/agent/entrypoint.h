/* entrypoint.h - the command that came with an image: ENTRYPOINT and CMD, from /opt/cove/entrypoint.
 *
 * Callers: main.c, when the program is called `entrypoint`. It has the rights of who called it, and becomes the command. */
#ifndef COVE_AGENT_ENTRYPOINT_H
#define COVE_AGENT_ENTRYPOINT_H

/* With the one argument --environment it tells what commands begin with: a build asks so where there is no shell. */
int entrypoint_main(int argc, char **argv, char **envp);

#endif
