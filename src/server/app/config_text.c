#include "base/roff.h"
#include "server/app/config.h"

static void write_sample(FILE *out)
{
    (void) fputs(
        "# Settings of coved, the HTTP server of cove: coved.conf(5). A line without '#' counts.\n"
        "# 'systemctl reload cove' reads them again; those marked (restart) need a restart.\n",
        out);
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *s = &settings[i];

        (void) fprintf(out, "\n# %s%s\n#%s = %s\n", s->help, s->change == LIVE ? "" : " (restart)",
                       s->name, s->fallback);
    }
}

static void write_man(FILE *out)
{
    (void) fputs(".TH COVED.CONF 5 \"\" \"cove " COVE_VERSION "\" \"cove manual\"\n"
                 ".SH NAME\ncoved.conf \\- settings of the HTTP server of cove\n"
                 ".SH DESCRIPTION\n"
                 "Lines of \\fIname\\fR = \\fIvalue\\fR in \\fI/etc/cove/coved.conf\\fR; a line "
                 "that begins with # is "
                 "a comment. Each setting is also a variable of the environment "
                 "(\\fBCOVE_LISTEN\\fR) and a flag of coved "
                 "(\\fB\\-\\-listen\\fR). Flags win over the environment, the environment wins "
                 "over the file. "
                 "\\fBsystemctl reload cove\\fR reads the settings again. The user \\fBcove\\fR "
                 "must be able to read "
                 "the file.\n.SH SETTINGS\n",
                 out);
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *s = &settings[i];

        (void) fprintf(out, ".TP\n\\fB%s\\fR = ", s->name);
        roff_text(out, s->fallback[0] ? s->fallback : "(none)");
        (void) fputc('\n', out);
        roff_line(out, s->help);
        if (s->change != LIVE)
            (void) fputs("(needs a restart)\n", out);
    }
    (void) fputs(".SH SEE ALSO\n\\fBcove\\fR(1)\n", out);
}

void config_text(FILE *out, bool man)
{
    if (man)
        write_man(out);
    else
        write_sample(out);
}
