#include "cli/help/man.h"

#include "base/err.h"
#include "base/roff.h"
#include "cli/help/completion.h"
#include "cli/report.h"
#include "wire/limits.h"

#include <string.h>

static void write_option(FILE *out, const struct option *o)
{
    (void) fputs(".TP\n", out);
    if (o->letter)
        (void) fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    (void) fputs("\\fB\\-\\-", out);
    roff_text(out, o->name);
    (void) fputs("\\fR", out);
    if (o->value) {
        (void) fputs(" \\fI", out);
        roff_text(out, o->value);
        (void) fputs("\\fR", out);
    }
    (void) fputc('\n', out);
    roff_line(out, o->help);
}

static void write_verb(FILE *out, const char *before, const struct verb *verb)
{
    (void) fprintf(out, ".SS \"cove %s%s\"\n\\fBcove %s%s\\fR ", before, verb->name, before,
                   verb->name);
    roff_text(out, verb->synopsis);
    (void) fputs("\n.PP\n", out);
    roff_line(out, verb->summary);
    if (verb->details)
        roff_block(out, verb->details);
}

static void write_whole(FILE *out, const struct verb *verb)
{
    char before[64];

    write_verb(out, "", verb);
    if (!verb->sub_count)
        completion_each_option(verb, out, write_option);
    (void) snprintf(before, sizeof before, "%s ", verb->name);
    for (size_t i = 0; i < verb->sub_count; i++) {
        write_verb(out, before, &verb->subs[i]);
        completion_each_option(&verb->subs[i], out, write_option);
    }
}

static void write_exit_codes(FILE *out)
{
    for (uint8_t code = 1; code < UINT8_MAX; code++) {
        for (uint32_t kind = ERR_NONE + 1; kind < ERR_KIND_COUNT; kind++) {
            if (err_kind_info(kind)->exit_code != code)
                continue;
            (void) fprintf(out, ".TP\n\\fB%u\\fR\n", code);
            roff_line(out, err_kind_info(kind)->help);
        }
    }
}

void man_page(FILE *out)
{
    (void) fputs(".TH COVE 1 \"\" \"cove " COVE_VERSION "\" \"cove manual\"\n"
                 ".SH NAME\ncove \\- run untrusted code, each command in a sandbox of its own\n"
                 ".SH SYNOPSIS\n\\fBcove\\fR [\\fB\\-\\-state\\fR \\fIDIR\\fR] \\fIVERB\\fR "
                 "[\\fIOPTION\\fR...] [\\fIOPERAND\\fR...]\n"
                 ".SH DESCRIPTION\n"
                 "\\fBcove up\\fR starts the keeper, which makes sandboxes, and the HTTP server. "
                 "The other verbs "
                 "use the sandboxes. As a service, cove is \\fBsystemctl start cove\\fR.\n"
                 ".SH VERBS\n",
                 out);
    for (size_t i = 0; i < verb_count; i++)
        write_whole(out, verbs[i]);
    (void) fputs(".SH EXIT STATUS\nThe exit code of the command that ran in the sandbox, or:\n",
                 out);
    write_exit_codes(out);
    (void) fputs(
        ".SH ENVIRONMENT\n.TP\n\\fBCOVE_STATE\\fR\nstate directory (" COVE_STATE_DEFAULT ")\n"
        ".TP\n\\fBCOVE_CACHE\\fR\npackages and archives of built templates (/var/cache/cove)\n"
        ".TP\n\\fBCOVE_LISTEN\\fR and all other settings of the server\nas in "
        "\\fBcoved.conf\\fR(5)\n"
        ".SH FILES\n.TP\n\\fI/etc/cove/coved.conf\\fR\nsettings of the HTTP server\n"
        ".TP\n\\fI/var/lib/cove\\fR\nsandboxes, templates, volumes, the server's store\n"
        ".SH SEE ALSO\n\\fBcoved.conf\\fR(5), \\fBsystemctl\\fR(1)\n",
        out);
}
