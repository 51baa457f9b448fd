#include "policy/analysis.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SHOWN_MAX  240
#define FIELDS_MAX 4096
#define VARS_WALK  4096

#define CLOCK_STEPS 65536 /* between two looks at the clock: ordinary commands never ask it */

static uint64_t cpu_us(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

uint64_t analysis_cpu_us(const struct analysis *an)
{
    return cpu_us() - an->cpu_start_us;
}

/* A policy's own patterns are held against the text and every command in it. */
static uint32_t steps_for(const struct policy *policy, size_t len)
{
    size_t patterns =
        policy->counts[POLICY_COMMAND_BLACKLIST] + policy->counts[POLICY_COMMAND_WHITELIST];
    size_t steps = ANALYSIS_STEPS_LEAST +
                   len * (ANALYSIS_STEPS_PER_BYTE + patterns * ANALYSIS_STEPS_PER_PATTERN);

    return len > ANALYSIS_STEPS_MAX || steps > ANALYSIS_STEPS_MAX ? ANALYSIS_STEPS_MAX
                                                                  : (uint32_t) steps;
}

void analysis_init(struct analysis *an, const struct policy *policy, struct policy_report *report,
                   size_t len)
{
    memset(an, 0, sizeof *an);
    an->policy = policy;
    an->report = report;
    an->whole = (struct span){ 0, len };
    an->steps_most = steps_for(policy, len);
    an->next_clock = CLOCK_STEPS;
    an->cpu_start_us = cpu_us();
    an->cwd = policy->workdir;
    arena_init(&an->arena, ANALYSIS_MEMORY_MAX, &an->out);
}

void analysis_done(struct analysis *an)
{
    arena_done(&an->arena);
}

bool analysis_guard(struct analysis *an, void (*run)(struct analysis *an, void *arg), void *arg)
{
    if (setjmp(an->out) == 0) {
        run(an, arg);
        return true;
    }
    report_incomplete(an->report, "too much work: stopped before the end");
    violate(an, RULE_TOO_COMPLEX, an->whole, "");
    return false;
}

void spend(struct analysis *an, size_t steps)
{
    if (steps > an->steps_most - an->steps)
        longjmp(an->out, 1);
    an->steps += (uint32_t) steps;
    if (an->steps < an->next_clock)
        return;
    an->next_clock = an->steps + CLOCK_STEPS;
    if (analysis_cpu_us(an) > ANALYSIS_CPU_MS_MAX * 1000)
        longjmp(an->out, 1);
}

void violate(struct analysis *an, enum rule rule, struct span at, const char *shown)
{
    violate_list(an, rule, at, shown, "");
}

void violate_list(struct analysis *an, enum rule rule, struct span at, const char *shown,
                  const char *entry)
{
    const struct policy *policy = an->policy;
    bool denied = policy_rules[rule].always_denies || policy_rules[rule].risk > policy->max_risk;

    if (rule == RULE_NONE || (policy->waived[rule] && !policy_rules[rule].always_denies))
        return;
    report_violation(an->report, rule, denied, at.off, at.len, shown, entry);
}

void unparsed(struct analysis *an, const char *what, struct span at)
{
    char reason[POLICY_REASON_MAX];

    (void) snprintf(reason, sizeof reason, "%s at byte %zu", what, at.off);
    report_incomplete(an->report, reason);
    violate(an, RULE_UNPARSED, at, "");
}

bool enter(struct analysis *an, struct span at)
{
    char reason[POLICY_REASON_MAX];

    if (an->depth < ANALYSIS_DEPTH_MAX) {
        an->depth++;
        return true;
    }
    (void) snprintf(reason, sizeof reason, "nested too deep at byte %zu", at.off);
    report_incomplete(an->report, reason);
    violate(an, RULE_TOO_COMPLEX, at, "");
    return false;
}

void leave(struct analysis *an)
{
    an->depth--;
}

struct span source_span(const struct source *src, const char *text, size_t len)
{
    if (!src->exact)
        return src->at;
    return (struct span){ src->at.off + (size_t) (text - src->text), len };
}

/* Past ANALYSIS_TEXT_MAX the rest is unknown, which one byte says. */
void sink_add(struct analysis *an, struct sink *sink, const char *text, size_t len)
{
    bool cut = false;

    if (sink->len + len > ANALYSIS_TEXT_MAX) {
        if (sink->len >= ANALYSIS_TEXT_MAX)
            return;
        len = ANALYSIS_TEXT_MAX - sink->len;
        cut = true;
    }
    spend(an, 1 + len / 8);
    if (sink->len + len + 1 > sink->cap) {
        size_t cap = sink->cap ? sink->cap * 2 : 64;
        char *larger;

        while (cap < sink->len + len + 1)
            cap *= 2;
        larger = arena_alloc(&an->arena, cap);
        if (sink->len)
            memcpy(larger, sink->text, sink->len);
        sink->text = larger;
        sink->cap = cap;
    }
    if (len)
        memcpy(sink->text + sink->len, text, len);
    sink->len += len;
    if (cut)
        sink->text[sink->len - 1] = UNKNOWN;
    sink->text[sink->len] = '\0';
}

void sink_char(struct analysis *an, struct sink *sink, char c)
{
    sink_add(an, sink, &c, 1);
}

struct flow sink_flow(struct analysis *an, const struct sink *sink)
{
    (void) an;
    return (struct flow){ sink->text ? sink->text : "", sink->len, sink->taint };
}

struct flow flow_of(const char *text)
{
    return (struct flow){ text, strlen(text), 0 };
}

struct flow flow_unknown(unsigned taint)
{
    static const char unknown[] = { UNKNOWN, '\0' };

    return (struct flow){ unknown, 1, taint };
}

void fields_add(struct analysis *an, struct fields *fields, struct field field)
{
    spend(an, 4);
    if (fields->count >= FIELDS_MAX)
        longjmp(an->out, 1);
    if (fields->count == fields->cap) {
        size_t cap = fields->cap ? fields->cap * 2 : 8;
        struct field *larger = arena_alloc(&an->arena, cap * sizeof *larger);

        if (fields->count)
            memcpy(larger, fields->at, fields->count * sizeof *larger);
        fields->at = larger;
        fields->cap = cap;
    }
    fields->at[fields->count++] = field;
}

/* Controls would make a mess of terminals and logs; the unknown byte shows as an ellipsis. */
static void show_text(struct analysis *an, struct sink *sink, const char *text)
{
    bool quote = !*text || strpbrk(text, " \t\n;&|<>()'\"");

    if (quote)
        sink_char(an, sink, '\'');
    for (; *text && sink->len < SHOWN_MAX; text++) {
        if (*text == UNKNOWN)
            sink_add(an, sink, "…", strlen("…"));
        else if ((unsigned char) *text < ' ' || *text == 0x7f)
            sink_char(an, sink, ' ');
        else
            sink_char(an, sink, *text);
    }
    if (quote)
        sink_char(an, sink, '\'');
}

const char *fields_shown(struct analysis *an, const struct field *argv, size_t argc)
{
    struct sink sink = { 0 };

    for (size_t i = 0; i < argc; i++) {
        if (i)
            sink_char(an, &sink, ' ');
        if (sink.len >= SHOWN_MAX) {
            sink_add(an, &sink, "...", 3);
            break;
        }
        show_text(an, &sink, argv[i].text);
    }
    return sink_flow(an, &sink).text;
}

const char *text_shown(struct analysis *an, const char *text, size_t len)
{
    bool cut = len > SHOWN_MAX;
    char *copy = arena_alloc(&an->arena, SHOWN_MAX + 8);
    size_t n = cut ? SHOWN_MAX : len;

    memcpy(copy, text, n);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char) copy[i] < ' ' || copy[i] == 0x7f)
            copy[i] = ' ';
    if (cut)
        memcpy(copy + n, "...", 4);
    return copy;
}

const struct var *var_find(struct analysis *an, const char *name)
{
    unsigned walked = 0;

    for (const struct var *var = an->vars; var && walked < VARS_WALK; var = var->next, walked++)
        if (strcmp(var->name, name) == 0) {
            spend(an, walked / 4 + 1);
            return var;
        }
    spend(an, walked / 4 + 1);
    return NULL;
}

/* Always in front: a subshell undoes its changes by going back to the old head. */
void var_set(struct analysis *an, const char *name, struct flow value)
{
    struct var *var = arena_alloc(&an->arena, sizeof *var);

    var->name = name;
    var->value = value;
    var->next = an->vars;
    an->vars = var;
}

const struct file *file_find(struct analysis *an, const char *path)
{
    unsigned walked = 0;

    for (const struct file *file = an->files; file && walked < VARS_WALK;
         file = file->next, walked++)
        if (strcmp(file->path, path) == 0) {
            spend(an, walked / 4 + 1);
            return file;
        }
    spend(an, walked / 4 + 1);
    return NULL;
}

void file_set(struct analysis *an, const char *path, struct flow content)
{
    struct file *file = arena_alloc(&an->arena, sizeof *file);

    file->path = path;
    file->content = content;
    file->next = an->files;
    an->files = file;
}
