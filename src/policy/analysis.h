/* analysis.h - what the parts of one analysis share.
 *
 * An analysis runs the command in its head: it parses, expands words with the variables it knows,
 * follows texts through pipes, files and substitutions, looks through wrappers, and shows every
 * program that would run to the judges. What cannot be known is a byte of its own (UNKNOWN) in
 * the text, so that the known rest of a word still counts.
 *
 * Bounds: depth, steps and memory. Past one of them the analysis ends where it is and the report says so: what was found
 * before counts. Steps are counted work, the same on every machine, and grow with the text: a short text cannot cost
 * much. A step is some 20 ns; code with a loop over what a command says calls spend() for it (fuzz/shell_cost.c looks
 * for loops that do not). The clock is only the net below that, for what was forgotten. */
#ifndef COVE_POLICY_ANALYSIS_H
#define COVE_POLICY_ANALYSIS_H

#include "policy/arena.h"
#include "policy/policy.h"

#include <stdint.h>

#define ANALYSIS_DEPTH_MAX 64
#define ANALYSIS_STEPS_LEAST                                                                       \
    (256u << 10) /* for a text of any length, and so many for each byte of it */
#define ANALYSIS_STEPS_PER_BYTE    32
#define ANALYSIS_STEPS_PER_PATTERN 4 /* and byte */
#define ANALYSIS_STEPS_MAX         (6u << 20)
#define ANALYSIS_MEMORY_MAX        (24u << 20)
#define ANALYSIS_CPU_MS_MAX        1000
#define ANALYSIS_TEXT_MAX          (64u << 10) /* of one value or output that is followed */

#define UNKNOWN '\x01'

/* Where a text came from; goes along with it. */
enum taint {
    TAINT_NET = 1,     /* downloaded */
    TAINT_DECODED = 2, /* went through a decoder */
    TAINT_SECRET = 4,  /* credentials or the environment */
};

struct span {
    size_t off, len;
};

/* A text that is parsed: the command itself, or something inside it. */
struct source {
    const char *text;
    size_t len;
    struct span at; /* where it stands in the command that was given */
    bool exact;     /* text[i] is byte at.off + i of it; else only the whole is known */
};

/* What a pipe, file or variable holds, as far as it is known. */
struct flow {
    const char *text; /* never NULL, NUL-terminated */
    size_t len;
    unsigned taint;
};

struct sink {
    char *text;
    size_t len, cap;
    unsigned taint;
};

/* One argument after expansion. */
struct field {
    const char *text; /* NUL-terminated */
    size_t len;
    bool glob; /* has * ? or [ that was not quoted */
    unsigned taint;
    struct span at;
};

struct fields {
    struct field *at;
    size_t count, cap;
};

struct var {
    const char *name;
    struct flow value;
    struct var *next;
};

struct file {
    const char *path;
    struct flow content;
    struct file *next;
};

struct node;
struct word;

struct func {
    const char *name;
    const struct node *body;
    struct func *next;
};

/* A function whose body is being run; parallel counts the pipes and & around it. */
struct call {
    const char *name;
    unsigned parallel;
    struct call *outer;
};

struct analysis {
    const struct policy *policy;
    struct policy_report *report;
    struct arena arena;
    jmp_buf out;
    struct span whole;
    uint32_t steps, steps_most, next_clock;
    uint64_t cpu_start_us;
    struct word *braces; /* the stack of brace.c, from its first use on */
    unsigned depth;
    uint32_t regex_runs;
    uint64_t slow_us; /* that slow patterns took */
    struct var *vars;
    struct file *files;
    struct func *funcs;
    struct call *calls;
    const char *cwd;                  /* "" when it is not known */
    unsigned parallel;                /* pipes and & around what is run now */
    unsigned endless;                 /* loops without end around it */
    bool loop_background;             /* something was put into the background in such a loop */
    bool loop_waits;                  /* something in it waits */
    unsigned pipe_shell, pipe_netcat; /* kinds of stages of the pipe that is run now */
    unsigned sockets;                 /* redirections to /dev/tcp around what is run now */
    unsigned fd_count;                /* process substitutions so far */
};

/* Runs what is given; false: it ran into a bound, and the report says which. */
bool analysis_guard(struct analysis *an, void (*run)(struct analysis *an, void *arg), void *arg);
void analysis_init(struct analysis *an, const struct policy *policy, struct policy_report *report,
                   size_t len);
void analysis_done(struct analysis *an);

/* Counts work; does not return past the bound. */
void spend(struct analysis *an, size_t steps);
/* CPU time of this thread since analysis_init. */
uint64_t analysis_cpu_us(const struct analysis *an);

/* Adds a violation unless the policy waives its rule. `shown` is the command as it would run. */
void violate(struct analysis *an, enum rule rule, struct span at, const char *shown);
/* The same for the policy's lists, with the entry that was met. */
void violate_list(struct analysis *an, enum rule rule, struct span at, const char *shown,
                  const char *entry);

/* The text cannot be parsed here; the analysis continues behind it. */
void unparsed(struct analysis *an, const char *what, struct span at);
/* Depth: true when one level more is allowed, to be given back by leave(). */
bool enter(struct analysis *an, struct span at);
void leave(struct analysis *an);

struct span source_span(const struct source *src, const char *text, size_t len);

void sink_add(struct analysis *an, struct sink *sink, const char *text, size_t len);
void sink_char(struct analysis *an, struct sink *sink, char c);
struct flow sink_flow(struct analysis *an, const struct sink *sink);
struct flow flow_of(const char *text);
struct flow flow_unknown(unsigned taint);
static inline bool is_unknown(const char *text)
{
    for (; *text; text++)
        if (*text == UNKNOWN)
            return true;
    return false;
}

void fields_add(struct analysis *an, struct fields *fields, struct field field);
/* "rm -rf '/my files'": for people; cut. */
const char *fields_shown(struct analysis *an, const struct field *argv, size_t argc);

/* A text as it was written; cut. */
const char *text_shown(struct analysis *an, const char *text, size_t len);

const struct var *var_find(struct analysis *an, const char *name);
void var_set(struct analysis *an, const char *name, struct flow value);
const struct file *file_find(struct analysis *an, const char *path);
void file_set(struct analysis *an, const char *path, struct flow content);

#endif
