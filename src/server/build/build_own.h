/* build_own.h - what the parts of the engine share. */
#ifndef COVE_SERVER_BUILD_BUILD_OWN_H
#define COVE_SERVER_BUILD_BUILD_OWN_H

#include "server/build/build.h"
#include "store/template.h"

#include <stdatomic.h>

/* ---- steps: build_spec.c, pure ---- */

enum step_type { STEP_RUN, STEP_COPY, STEP_ENV, STEP_WORKDIR, STEP_USER, STEP_TYPES };

struct build_step {
    enum step_type type;
    const json_t *args; /* texts; borrowed from the spec */
    const char *files;  /* of COPY */
    bool force;
};

struct build_spec {
    json_t *body; /* owned: what the texts point into */
    const char *from, *start, *ready;
    struct build_step *steps;
    size_t count;
    bool force, e2b;
    uint64_t step_ms;
    json_t *network; /* borrowed; NULL: none was said */
};
/* Takes a reference to body. */
int spec_read(struct caller *caller, json_t *body, bool e2b, struct build_spec **ret,
              struct err *err);
void spec_free(struct build_spec *spec);
const char *step_arg(const struct build_step *step, size_t index); /* "" where there is none */
const char *step_name(enum step_type type);
/* Whether it changes files, so that a snapshot is worth it. */
bool step_changes(const struct build_step *step);

/* What steps say of those behind them. */
struct build_state {
    json_t *env;   /* object of texts; owned */
    char user[64]; /* "": the template's */
    char workdir[PATH_MAX];
};
/* ENV, WORKDIR, USER. */
int state_apply(struct build_state *state, const struct build_step *step, struct err *err);
/* A path as the step means it: relative ones are in the workdir. */
int state_path(const struct build_state *state, const char *path, char out[PATH_MAX],
               struct err *err);
/* $NAME and ${NAME}, \$ as it is; the caller's to free. */
char *state_expand(const struct build_state *state, const char *text);
#define KEY_MAX STORE_HASH_MAX
/* The key of a step from the one before it. */
void step_key(const char *before, const struct build_step *step, char out[KEY_MAX]);
void key_begin(const char *tenant, const char *from, const struct build_state *state,
               char out[KEY_MAX]);
/* What to copy out of an unpacked archive: `source` up to its first pattern. ERR_INVALID: it leads out of the archive. */
int copy_source(const char *source, char out[PATH_MAX], struct err *err);

/* The template that an image is installed as: the last part of its path, and its tag unless that is "latest". */
void installed_name(const char *image, char *out, size_t size);

/* ---- jobs: build.c ---- */

struct job;
struct app *job_app(struct job *job);
struct caller *job_caller(struct job *job);
const struct build_spec *job_spec(struct job *job);
struct store_build *job_record(struct job *job); /* of the thread that runs it */
bool job_cancelled(struct job *job);
void job_log(struct job *job, const char *level, const char *step, const char *text, size_t len);
void job_say(struct job *job, const char *level, const char *step, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Writes the record. */
int job_save(struct job *job, struct err *err);

/* build_settle.c: at the start, and after a build of the template. */
void build_settle(struct app *app);
void build_forget_old(struct app *app, const char *template);

/* All of it: 0, and the record has the snapshot, *ret the settings; or -1, and the record's step is the one that failed. */
int job_run(struct job *job, json_t **ret, struct err *err);
void job_remove_sandbox(struct job *job);

/* ---- one that runs: build_run.c, build_cache.c ---- */

struct run {
    struct job *job;
    struct ops ops;
    struct build_state state;
    struct reach *network;
    char from[2 * STORE_NAME_MAX];
    char (*keys)[KEY_MAX]; /* [0]: of FROM; [n]: of step n */
    const char *step;      /* "base", "1" … */
    char number[16];
};

/* The sandbox as it is now, under the key of the step. */
int cache_keep(struct run *run, const char *key, struct err *err);
/* The last step whose result is known, or 0; the record holds it. */
int cache_find(struct run *run, size_t *ret, struct err *err);

/* ---- files: build_files.c ---- */

/* Into the sandbox, below `path`. */
int build_files_unpack(struct ops *ops, const char *sandbox, const char *path, const char *hash,
                       struct err *err);
/* Uploads of more than a day ago. */
void build_files_expire(struct app *app);

#endif
