/* plan.h - a Dockerfile as the steps of POST /v1/builds.
 *
 * Stages that the target does not need are left out. A stage that is FROM another one begins with the steps of that one, so the
 * engine knows of stages only as a source of COPY --from. Variables are replaced here, paths made absolute, and users named:
 * the engine's own rules, which are E2B's, have nothing left to decide.
 *
 * Pure: what is outside (what FROM names, files) comes by functions of the caller. Fuzzed.
 *
 * Owns:    the body and the copies, from plan_make to plan_done.
 * Callers: cli/api/build.c. */
#ifndef COVE_DOCKERFILE_PLAN_H
#define COVE_DOCKERFILE_PLAN_H

#include "dockerfile/dockerfile.h"

/* What FROM names: {"env": {NAME: VALUE}, "user": …, "workdir": …}; "user" and "workdir" as Docker means them: root and "/" where
 * an image says nothing. *ret is the caller's to decref. */
typedef int plan_base(void *arg, const char *from, json_t **ret, struct err *err);

struct plan_wish {
    const char *target;    /* NULL: the last stage */
    const json_t *args;    /* of --build-arg: an object of texts */
    const json_t *secrets; /* of --secret: an object whose names are the ids that are there */
    plan_base *base;
    void *arg;
};

/* A COPY or ADD of files of the directory: the caller collects them, and sets "files" and the first of "args" of the step. */
struct plan_copy {
    json_t *step;    /* a reference: it is in the body, in one stage or several */
    json_t *sources; /* texts; empty: heredocs alone */
    json_t *docs;    /* [name, text] each */
    unsigned line;
    bool add;       /* local archives are unpacked */
    bool directory; /* the destination ends with '/' */
};

struct plan {
    json_t *body; /* from, steps, stages */
    /* the line of each step, in the order in which the engine counts: of the stages, then of the last one */
    json_t *lines;
    struct plan_copy *copies;
    size_t copy_count;
    json_t *unused; /* names of wish->args that no ARG declares */
};

int plan_make(const struct dockerfile *file, const struct plan_wish *wish, struct plan *ret,
              struct err *err);
void plan_done(struct plan *plan);

#endif
