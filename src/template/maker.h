/* maker.h - who has templates made: where cove-agent is, and who is told what happens meanwhile.
 *
 * Callers: fill one in (cli/template/template_maker.c) for template_build.h, template_host.h and template_store.h.
 * Never:   prints; each function is called by the thread that makes the template, and may be NULL. */
#ifndef COVE_TEMPLATE_MAKER_H
#define COVE_TEMPLATE_MAKER_H

struct template_maker {
    const char *agent; /* the program cove-agent, which templates have as sudo; NULL: not found */
    void *context;
    /* Worth saying, though no failure. */
    void (*note)(void *context, const char *text);
    /* How far a build is. detail may be NULL; it comes out of a build's output. */
    void (*step)(void *context, unsigned percent, const char *step, const char *detail);
    /* A build has failed: the end of its output. */
    void (*failed)(void *context, const char *output);
    /* The template was made again or changed: a memory image of it is of no use. With its lock. */
    void (*changed)(void *context, const char *name);
};

void template_note(const struct template_maker *maker, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void template_step(const struct template_maker *maker, unsigned percent, const char *step,
                   const char *detail);
void template_changed(const struct template_maker *maker, const char *name);

#endif
