#include "cli/template_maker.h"

#include "base/own.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/template_warm.h"

#include <stdio.h>

static void note(void *context, const char *text)
{
    (void) context;
    report_note("%s", text);
}

static void step(void *context, unsigned percent, const char *step, const char *detail)
{
    struct maker *maker = context;

    progress_show(&maker->progress, percent, step, detail);
}

static void failed(void *context, const char *output)
{
    struct maker *maker = context;

    progress_done(&maker->progress, NULL);
    (void) fprintf(stderr, "--- the end of the build's output ---\n%s\n---\n", output);
}

static void changed(void *context, const char *name)
{
    (void) context;
    template_warm_forget(name);
}

void maker_init(struct maker *maker, const char *title)
{
    struct err ignored;

    maker->way = (struct template_maker){
        .context = maker, .note = note, .step = step, .failed = failed, .changed = changed
    };
    if (program_find("cove-agent", maker->agent, sizeof maker->agent, &ignored) == 0)
        maker->way.agent = maker->agent;
    progress_init(&maker->progress, title);
}

void maker_done(struct maker *maker)
{
    progress_done(&maker->progress, NULL);
}
