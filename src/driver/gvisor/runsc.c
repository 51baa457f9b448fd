#include "driver/gvisor/runsc.h"

#include "base/own.h"
#include "driver/ask.h"
#include "wire/runsc.h"

#include <stdbool.h>
#include <stdio.h>

static const char *const places[] = { "/usr/local/bin/runsc", "/usr/bin/runsc" };

/* The last file that was asked. */
static struct {
    const char *path;
    struct stat file;
    uint32_t version; /* 0: it does not say, or does not run */
} known;

static uint32_t ask_version(const char *path)
{
    const char *const argv[] = { path, "--version", NULL };
    char text[256];

    ask_program(argv, text, sizeof text);
    return runsc_parse_version(text);
}

/* False: there is none. */
static bool look(void)
{
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (stat(places[i], &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        if (known.path != places[i] || !ask_is_same(&known.file, &st)) {
            known.path = places[i];
            known.file = st;
            known.version = ask_version(places[i]);
        }
        return true;
    }
    return false;
}

int runsc_find(const char **ret, struct err *err)
{
    if (!look())
        return err_set(err, ERR_UNSUPPORTED,
                       "isolation 'gvisor' needs runsc, which is not installed (package runsc of "
                       "Debian 13 or bookworm-backports)");
    if (known.version == 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "isolation 'gvisor' needs runsc, but %s does not tell its version",
                       known.path);
    if (known.version < RUNSC_OLDEST)
        return err_set(err, ERR_UNSUPPORTED,
                       "isolation 'gvisor' needs runsc of %u or later, and %s is of %u",
                       RUNSC_OLDEST, known.path, known.version);
    *ret = known.path;
    return 0;
}

void runsc_version(const struct stat *file, char *out, size_t size)
{
    if (look() && known.version != 0 && (!file || ask_is_same(file, &known.file)))
        (void) snprintf(out, size, "%u", known.version);
    else
        out[0] = '\0';
}

const char *runsc_text(void)
{
    static char text[32];

    if (!look())
        return "no runsc";
    if (known.version == 0)
        return "runsc does not run";
    (void) snprintf(text, sizeof text,
                    known.version < RUNSC_OLDEST ? "runsc %u is too old" : "runsc %u",
                    known.version);
    return text;
}
