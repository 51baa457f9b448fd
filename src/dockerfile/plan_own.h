/* plan_own.h - what the parts of plan.c share. */
#ifndef COVE_DOCKERFILE_PLAN_OWN_H
#define COVE_DOCKERFILE_PLAN_OWN_H

#include "dockerfile/plan.h"

struct stage {
    char *name, *from; /* name "": none. from: with its variables replaced */
    unsigned line;
    size_t first, last;    /* lines of the file: [first, last) */
    int parent;            /* the stage that it is FROM; -1: a template */
    bool needed, copied;   /* copied: a source of COPY --from */
    int number;            /* in "stages"; of those that are copied */
    json_t *steps, *lines; /* shared with stages that are FROM this one, step by step */
    json_t *env, *base_env, *args;
    json_t *shell;
    char *user, *workdir;
    bool own_cmd;
};

struct planner {
    const struct dockerfile *file;
    const struct plan_wish *wish;
    struct plan *plan;
    struct stage *stages;
    size_t count;
    json_t *global; /* ARG before the first FROM */
    json_t *used;   /* build arguments that an ARG declares */
};

/* Variables of a stage; stage NULL: those before the first FROM. */
int plan_expand(struct planner *p, const struct stage *stage, const char *text, char **ret,
                struct err *err);
int plan_expand_doc(struct planner *p, const struct stage *stage, const char *text, char **ret,
                    struct err *err);
const char *plan_flag(const struct dockerfile_line *line, const char *name);
/* A path as Docker means it: relative to WORKDIR. The caller's to free. */
char *plan_join(const struct stage *stage, const char *path);
/* The stage of that name or number before `before`; -1: there is none. */
int plan_find(const struct planner *p, const char *name, size_t before);
/* Takes the step. */
void plan_step(struct stage *stage, unsigned line, json_t *take_step);
/* A text for the engine, which replaces variables itself: each '$' gets its '\'. The caller's to free. */
char *plan_literal(const char *text);
int plan_arg(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
             struct err *err);

bool plan_is_variable(const char *name);

/* plan_settings.c; plan_env is of LABEL, too. */
int plan_env(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
             struct err *err);
int plan_workdir(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                 struct err *err);
int plan_user(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
              struct err *err);
int plan_shell(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
               struct err *err);
int plan_command(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                 struct err *err);
int plan_expose(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                struct err *err);

/* plan_run.c, plan_copy.c */
int plan_run(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
             struct err *err);
int plan_copy(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
              struct err *err);

#endif
