#include "cli/template/template_maker.h"

#include "base/own.h"
#include "cli/programs.h"
#include "cli/records.h"
#include "cli/report.h"

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
    struct maker *maker = context;
    bool cooled;

    if (records_made(name, maker->how, maker->from, &cooled, &maker->unrecorded) == 0)
        maker->unrecorded.kind = ERR_NONE;
    else
        report_note("template '%s' is in place, but not in the server's records: %s", name,
                    maker->unrecorded.msg);
    if (cooled)
        report_note("template '%s' has no memory image any more: 'cove template warm' makes one",
                    name);
}

void maker_init(struct maker *maker, const char *title)
{
    struct err ignored;

    maker->way = (struct template_maker){
        .context = maker, .note = note, .step = step, .failed = failed, .changed = changed
    };
    maker->how = "build";
    maker->from = NULL;
    maker->unrecorded.kind = ERR_NONE;
    if (program_find("cove-agent", maker->agent, sizeof maker->agent, &ignored) == 0)
        maker->way.agent = maker->agent;
    progress_init(&maker->progress, title);
}

void maker_done(struct maker *maker)
{
    progress_done(&maker->progress, NULL);
}

int maker_recorded(const struct maker *maker, struct err *err)
{
    if (maker->unrecorded.kind == ERR_NONE)
        return 0;
    *err = maker->unrecorded;
    return -1;
}
