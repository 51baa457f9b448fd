/* build_own.h - what the parts of the engine share. */
#ifndef COVE_SERVER_BUILD_BUILD_OWN_H
#define COVE_SERVER_BUILD_BUILD_OWN_H

#include "server/build/build.h"
#include "server/ops/ops_pull.h"
#include "server/ops/ops_tar.h"
#include "store/template.h"

#include <stdatomic.h>

/* ---- steps: build_spec.c, pure ---- */

enum step_type {
    STEP_RUN,
    STEP_COPY,
    STEP_ENV,
    STEP_WORKDIR,
    STEP_USER,
    STEP_ENTRYPOINT,
    STEP_CMD,
    STEP_LABEL,
    STEP_EXPOSE,
    STEP_TYPES
};

struct build_step {
    enum step_type type;
    const json_t *args; /* texts; borrowed from the spec, as the others */
    const char *files;  /* of COPY: an upload */
    int stage;          /* of COPY: where it is from instead; -1: files */
    /* of RUN */
    const json_t *exec;   /* the words of the command; NULL: a login shell runs args[0] */
    const json_t *env;    /* variables of this command alone */
    const json_t *mounts; /* build_mount.c */
    const char *cwd;
    bool force;
};

/* A template and steps on it. The last stage of a build is its result, the others are sources of COPY. */
struct build_stage {
    const char *from;
    bool image;                        /* from is an image of a registry, whatever is installed */
    const char *archive, *archive_tag; /* an upload in its place; NULL: none */
    struct build_step *steps;          /* owned */
    size_t count, before;              /* before: steps of the stages before it */
};

struct build_spec {
    json_t *body; /* owned: what the texts point into */
    const char *start, *ready;
    struct build_stage *stages;
    size_t stage_count, steps;       /* steps: of all stages */
    const json_t *secrets;           /* id: base64; NULL: none */
    const char *username, *password; /* for the registry of the last stage's image; NULL: none */
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
static inline const struct build_stage *spec_last(const struct build_spec *spec)
{
    return &spec->stages[spec->stage_count - 1];
}
bool variable_ok(const char *name);
/* build_mount.c: a mount of RUN. Why it is invalid, or NULL. secrets: those of the build. */
const char *mount_check(const json_t *mount, const json_t *secrets);
const char *secrets_check(const json_t *secrets);
/* Whether it changes files, so that a snapshot is worth it. */
bool step_changes(const struct build_step *step);

/* What steps say of those behind them. */
struct build_state {
    json_t *env;                               /* object of texts; owned, as the others */
    json_t *labels, *ports, *entrypoint, *cmd; /* entrypoint, cmd: NULL where no step said one */
    char user[64];                             /* "": the template's */
    char workdir[PATH_MAX];
};
int state_init(struct build_state *state);
void state_done(struct build_state *state);
/* ENV, WORKDIR, USER, and what is said of the template alone. */
int state_apply(struct build_state *state, const struct build_step *step, struct err *err);
/* A path as the step means it: relative ones are in the workdir. */
int state_path(const struct build_state *state, const char *path, char out[PATH_MAX],
               struct err *err);
/* $NAME and ${NAME}, \$ as it is, at most BUILD_TEXT_MAX bytes; the caller's to free. */
char *state_expand(const struct build_state *state, const char *text, struct err *err);
#define KEY_MAX STORE_HASH_MAX
/* The key of a step from the one before it. source: of a COPY from a stage, the last key of that; else "". */
void step_key(const char *before, const struct build_step *step, const char *source,
              char out[KEY_MAX]);
/* The name of the files that a path of a stage becomes: source as above. */
void export_key(const char *source, const char *path, char out[KEY_MAX]);
/* And that of a cache of RUN. */
void mount_key(const char *tenant, const char *id, char out[KEY_MAX]);
void key_begin(const char *tenant, const char *from, const struct build_state *state,
               char out[KEY_MAX]);
/* What to copy out of an unpacked archive: `source` up to its first pattern. ERR_INVALID: it leads out of the archive. */
int copy_source(const char *source, char out[PATH_MAX], struct err *err);

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
bool build_stopping(void);

/* build_settle.c: at the start, and after a build of the template. */
void build_settle(struct app *app);
/* Writes the record of one that failed. A store on a full disk takes nothing: then when there is room, and the sandbox goes then if it
 * could not before. */
void job_save_end(struct job *job);
void build_forget_old(struct app *app, const char *template);

/* All of it: 0, and the record has the snapshot, *ret the settings; or -1, and the record's step is the one that failed. */
int job_run(struct job *job, json_t **ret, struct err *err);
void job_remove_sandbox(struct job *job);

/* ---- one that runs: build_run.c, build_cache.c ---- */

struct run {
    struct job *job;
    struct ops ops;
    const struct build_stage *stage; /* the one that runs */
    struct build_state state;        /* of that */
    struct reach *network;
    char from[2 * STORE_NAME_MAX];
    char (**keys)[KEY_MAX];         /* of each stage: [0] of FROM, [n] of step n */
    char (*pulled)[OPS_PULLED_MAX]; /* of each stage: the image that it stands on; "": a template */
    const char *step;               /* "base", "1" … */
    char number[16];
};

/* build_run.c: what a step needs of a sandbox. image NULL: of FROM. */
int run_make_sandbox(struct run *run, const char *image, struct err *err);

/* build_from.c: what tells this version of the installed template run->from from every other, as a text. ERR_STATE: FROM has a digest, and
 * another image is installed. */
int from_installed(struct run *run, char *out, size_t size, struct err *err);
/* build_image.c: what stages stand on that is no template: each image is pulled or imported, and held until the release. */
int images_get(struct run *run, struct err *err);
void images_release(struct run *run);

/* build_exec.c: commands in it. Each waits for the end; what is no 0 is an error. */
int run_command(struct run *run, struct ops_command *command, const json_t *more_env,
                const char *what, struct err *err);
/* A script of ours, as root. */
int run_script(struct run *run, const char *script, const char *const *words, size_t count,
               const char *what, struct err *err);
/* Variables of the steps so far, and more; the caller's to free by env_free. */
char **env_list(const struct build_state *state, const json_t *more, size_t *ret_count);
void env_free(char **texts, size_t count);

/* build_step.c */
int step_do(struct run *run, const struct build_step *step, struct err *err);

/* build_copy.c, by the agent alone: no program of the template is needed. */
int copy_do(struct run *run, const struct build_step *step, struct err *err);
/* Of a COPY from a stage: whether the build has the files that it copies. */
bool copy_has_files(const struct run *run, const struct build_step *step);
/* What it copies, out of the sandbox of that stage and into those files. */
int copy_export(struct run *run, const struct build_step *step, struct err *err);

/* build_write.c: the other files that steps read and write, by the agent alone. */
int write_directory(struct run *run, const char *path, const char *owner, struct err *err);
/* ENTRYPOINT and CMD. */
int write_words(struct run *run, const struct build_step *step, struct err *err);
/* USER: one that is not there is made. */
int write_user(struct run *run, struct err *err);
/* "USER", "USER:GROUP" or "USER:" for an ops_file; the texts are in room. "": none. */
void owner_split(const char *text, char room[160], struct ops_file *file);

/* build_mount.c: before and after a RUN. leave comes after enter, also if that failed or the command did; then the step fails, and
 * nothing of the mounts is kept. */
int mounts_enter(struct run *run, const struct build_step *step, json_t *env, struct err *err);
int mounts_leave(struct run *run, const struct build_step *step, struct err *err);

/* build_warm.c: the start command. */
int run_warm(struct run *run, struct err *err);

/* The sandbox as it is now, under the key of the step; NULL: no later build looks for it. seal_from as in ops_save_template: one that was
 * sealed is gone from the record of the build. */
int cache_keep(struct run *run, const char *key, uint64_t seal_from, struct err *err);
/* Of the stage, the last step whose result is known, or 0; the record holds it. */
int cache_find(struct run *run, size_t *ret, struct err *err);

/* ---- files: build_files.c ---- */

/* An upload, for reading. */
int build_files_open(struct app *app, const char *tenant, const char *hash, int *ret_fd,
                     struct err *err);
/* `build` is whose own files these are, gone when it ends; "": the tenant's, as an upload. */
bool build_files_own(struct app *app, const char *tenant, const char *build, const char *hash);
/* Out of the sandbox: what fill puts in, under that name. */
typedef int build_files_fill(void *arg, struct tar_out *out, struct err *err);
int build_files_pack(struct ops *ops, const char *build, const char *hash, build_files_fill *fill,
                     void *arg, struct err *err);
/* For fill: the content of a directory, or a file; each goes where its prefix says (ops_tar.h). */
int build_files_add(struct ops *ops, const struct ops_file *file, struct tar_out *out,
                    const char *dir_prefix, const char *file_prefix, struct err *err);
/* Into the sandbox, as pick says. */
int build_files_unpack(struct ops *ops, const char *build, const char *hash, ops_tar_pick *pick,
                       void *arg, struct err *err);

#endif
