/* build.h - templates from steps: one engine for every dialect.
 *
 * A build is an ordinary sandbox of its tenant with root in it, in which the steps run one after the other. After every RUN and COPY
 * the files are kept as a snapshot under a key: the hash of what was built on, of this step and of all before it. A build that
 * comes to a key that is known continues from there; keys are a tenant's own. The last snapshot and what ENV, USER and
 * WORKDIR said are the template.
 *
 *     new (steps are to come) → waiting → building → ready | failed | cancelled
 *
 * Owns:    the threads of builds, their logs (in memory, with the server), and files that were uploaded for COPY.
 * Callers: surfaces; main starts and stops it.
 * Never:   ends a build because its client went away. A build that was under way when the server ended has failed, and its sandbox
 *          is removed at the next start. */
#ifndef COVE_SERVER_BUILD_BUILD_H
#define COVE_SERVER_BUILD_BUILD_H

#include "server/ops/ops_template.h"

#include <jansson.h>
#include <limits.h>

#define BUILD_STEPS_MAX    200 /* of all stages */
#define BUILD_STAGES_MAX   20
#define BUILD_TEXT_MAX     65536      /* of one argument of a step */
#define BUILD_STEP_MS      3600000u   /* what a step may take; a build may say less */
#define BUILD_AT_ONCE      4          /* builds that run, of all tenants */
#define BUILD_TENANT_MOST  2          /* and of one */
#define BUILD_TENANT_QUEUE 20         /* of one tenant, running and waiting */
#define BUILD_LOG_MAX      (4u << 20) /* bytes of a log */
#define BUILD_FILES_COUNT  10000      /* uploads of a tenant; how large they may be is a setting */
#define BUILD_HASH_LEN     64         /* hex digits that name an upload */
#define BUILD_SCRATCH      "scratch"  /* a template with no program, of the host */

/* Removes what a server before this one left. */
int build_start(struct app *app, struct err *err);
void build_stop(void);

/* ---- a build ---- */

struct build_want {
    struct ops_template_ref ref;
    const char *const *tags; /* beside the one of ref */
    size_t tag_count;
    uint64_t cpu_milli, memory_bytes,
        disk_bytes; /* of the build's sandbox, and at least of those made of it; 0: as any */
};

struct build_view {
    char id[OPS_BUILD_ID_MAX], template[ID_LEN + 1], name[OPS_NAME_MAX];
    const char *state; /* "new", "waiting", "building", "ready", "failed", "cancelled" */
    bool ended;
    char reason[ERR_MSG_MAX], step[16]; /* of a failure: "base", "1" …, "finalize" */
    char tags[2048];                    /* a JSON array */
    uint64_t created_ms, ended_ms;
};

/* A build whose steps are still to come; the template's name is the caller's from now on. */
int build_prepare(struct ops *ops, const struct build_want *want, struct build_view *ret,
                  struct err *err);
extern const struct form build_form;
/* Its steps: {"from", "steps": [{"type", "args", …}], "stages": [{"from", "steps"}], "secrets": {id: base64}, "force", "start",
 * "ready", "network", "step_timeout"}: docs/templates.md.
 * e2b: defaults and words of that dialect. ERR_STATE: it has its steps already; ERR_TOO_MANY. */
int build_submit(struct ops *ops, const char *build, json_t *body, bool e2b, struct err *err);
int build_get(struct ops *ops, const char *build, struct build_view *ret, struct err *err);
typedef int build_each(void *arg, const struct build_view *build, struct err *err);
/* Newest first; template NULL: of any. */
int build_list(struct ops *ops, const char *template, size_t limit, build_each *each, void *arg,
               struct err *err);
/* One that has ended stays as it is. */
int build_cancel(struct ops *ops, const char *build, struct err *err);

struct build_line {
    uint64_t time_ms;
    const char *level; /* "info", "warn", "error" */
    char step[16];
    const char *text; /* borrowed during the call; one line */
};
typedef int build_line_each(void *arg, const struct build_line *line, struct err *err);
/* Lines from number `from` on, at most `most`. wait_ms: until there is one, or the build has ended. Returns how many. */
int build_log(struct ops *ops, const char *build, size_t from, size_t most, unsigned wait_ms,
              build_line_each *each, void *arg, struct err *err);

/* ---- files for COPY: a tar archive, perhaps gzip, under a name that the tenant chose: BUILD_HASH_LEN hex digits ---- */

bool build_hash_ok(const char *hash);
/* Bytes of one upload. */
uint64_t build_upload_most(struct app *app);
bool build_files_have(struct app *app, const char *tenant, const char *hash);
struct build_upload {
    struct app *app;
    const char *tenant; /* borrowed */
    int fd;
    char path[PATH_MAX], temporary[PATH_MAX];
    uint64_t bytes, room, counted; /* counted: those that the quota knows of */
};
int build_upload_begin(struct app *app, const char *tenant, const char *hash,
                       struct build_upload *ret, struct err *err);
int build_upload_take(struct build_upload *upload, const void *data, size_t len, struct err *err);
/* keep false: it is dropped. */
int build_upload_end(struct build_upload *upload, bool keep, struct err *err);

#endif
