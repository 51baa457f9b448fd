#include "base/roff.h"

#include <stdbool.h>
#include <string.h>

/* One character of UTF-8 as groff names it. Text of ours is well-formed. */
static const char *put_wide(FILE *out, const char *text)
{
    unsigned char lead = (unsigned char) *text++;
    unsigned code = lead >= 0xf0 ? lead & 7u : lead >= 0xe0 ? lead & 15u : lead & 31u;

    while (((unsigned char) *text & 0xc0) == 0x80)
        code = code << 6 | ((unsigned char) *text++ & 0x3fu);
    (void) fprintf(out, "\\[u%04X]", code);
    return text;
}

static void put_text(FILE *out, const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        if ((unsigned char) *text >= 0x80) {
            text = put_wide(out, text);
            continue;
        }
        if (*text == '\\')
            (void) fputs("\\e", out);
        else if (*text == '-')
            (void) fputs("\\-", out);
        else if (*text == '\'') /* not a typographic one: commands are copied from here */
            (void) fputs("\\(aq", out);
        else
            (void) fputc(*text, out);
        text++;
    }
}

static void put_line(FILE *out, const char *text, size_t len)
{
    if (len && (text[0] == '.' || text[0] == '\''))
        (void) fputs("\\&", out);
    put_text(out, text, len);
    (void) fputc('\n', out);
}

void roff_text(FILE *out, const char *text)
{
    put_text(out, text, strlen(text));
}

void roff_line(FILE *out, const char *text)
{
    put_line(out, text, strlen(text));
}

void roff_block(FILE *out, const char *text)
{
    bool example = false;

    (void) fputs(".PP\n", out);
    while (*text) {
        size_t len = strcspn(text, "\n");
        bool shown = len > 2 && text[0] == ' ' && text[1] == ' ';

        if (shown != example)
            (void) fputs(shown ? ".RS\n.nf\n" : ".fi\n.RE\n", out);
        example = shown;
        if (len)
            put_line(out, text, len);
        else
            (void) fputs(".PP\n", out);
        text += len + (text[len] == '\n');
    }
    if (example)
        (void) fputs(".fi\n.RE\n", out);
}
