/* build.h - 'cove template build -f Dockerfile DIR': a Dockerfile becomes a build of any server.
 *
 *   build.c          the Dockerfile and its options, what FROM names, the request, the end
 *   build_context.c  which files of DIR are for COPY and ADD
 *   build_archive.c  those files, hashed and sent
 *   build_watch.c    the log, as it comes
 *
 * Owns:    nothing on this host.
 * Callers: the verb template. */
#ifndef COVE_CLI_API_BUILD_H
#define COVE_CLI_API_BUILD_H

#include "cli/options.h"
#include "dockerfile/match.h"
#include "dockerfile/plan.h"
#include "remote/remote.h"

#include <stdint.h>

struct build_values {
    const char *file, *target, *network, *tenant, *start, *ready;
    struct option_list args, secrets, tags;
};

/* clang-format off */
#define BUILD_OPTIONS(at) \
    { 'f', "file",      OPTION_TEXT, (at) + offsetof(struct build_values, file),    "FILE", COMPLETE_FILE, "a Dockerfile; else the one in DIR" }, \
    { 't', "tag",       OPTION_LIST, (at) + offsetof(struct build_values, tags),    "NAME[:TAG]", COMPLETE_NONE, "of a Dockerfile: the template's name; else that of DIR (repeatable)" }, \
    { 0,   "build-arg", OPTION_LIST, (at) + offsetof(struct build_values, args),    "KEY=VAL", COMPLETE_NONE, "of a Dockerfile: the value of an ARG; KEY alone takes yours (repeatable)" }, \
    { 0,   "secret",    OPTION_LIST, (at) + offsetof(struct build_values, secrets), "id=ID,src=FILE", COMPLETE_NONE, "of a Dockerfile: for RUN --mount=type=secret; env=NAME instead of src (repeatable)" }, \
    { 0,   "target",    OPTION_TEXT, (at) + offsetof(struct build_values, target),  "STAGE", COMPLETE_NONE, "of a Dockerfile: the stage to build; else the last" }, \
    { 0,   "network",   OPTION_TEXT, (at) + offsetof(struct build_values, network), "MODE", COMPLETE_NONE, "of a Dockerfile: what its steps may reach: off, public" }, \
    { 0,   "start",     OPTION_TEXT, (at) + offsetof(struct build_values, start),   "COMMAND", COMPLETE_NONE, "of a Dockerfile: runs in every sandbox, from its start on" }, \
    { 0,   "ready",     OPTION_TEXT, (at) + offsetof(struct build_values, ready),   "COMMAND", COMPLETE_NONE, "with --start: succeeds when that command is ready" }, \
    { 0,   "tenant",    OPTION_TEXT, (at) + offsetof(struct build_values, tenant),  "NAME", COMPLETE_NONE, "of a Dockerfile: build for this tenant" }
/* clang-format on */

/* Images that are missing. */
struct build_images {
    /* Installs an image, or pulls it for the tenant: 0, or an exit code after what was said. */
    int (*pull)(const char *image);
    /* Whether the template of that name is the image with the digest that stands behind the '@' of its name; NULL: not known. */
    bool (*has)(const char *template, const char *digest);
};

/* Whether the words behind 'template build' are about a Dockerfile: -f, or a directory. */
bool build_is_dockerfile(int count, char *const *words);
/* Returns the exit code. fresh: no step is taken from the cache. images NULL: images that are missing are an error. */
int build_dockerfile(const struct build_values *values, const char *dir, bool fresh, bool as_json,
                     const struct build_images *images);

/* ---- files ---- */

struct context {
    int fd;
    const char *dir; /* borrowed */
    struct ignore ignore;
    const struct remote *remote;
};
int context_open(const char *dir, const char *dockerfile, const struct remote *remote,
                 struct context *ret, struct err *err);
void context_close(struct context *context);
/* Collects the files, uploads them if the server does not have them, and completes the step. */
int context_fill(struct context *context, struct plan_copy *copy, struct err *err);

/* ---- the log ---- */

struct watch_end {
    char state[16], reason[ERR_MSG_MAX], step[16];
    size_t cached, steps;
    bool interrupted;
};
/* Shows the log on stderr until the build has ended. SIGINT and SIGTERM cancel the build. lines: of the Dockerfile, by step. */
int watch_build(const struct remote *remote, const char *build, const json_t *lines,
                struct watch_end *ret, struct err *err);

#endif
