#include "cli/elsewhere.h"

#include "base/own.h"
#include "cli/api/server.h"

#include <stdlib.h>
#include <string.h>

/* What a verb is about when no server is named on the command line, but one is chosen by 'cove context use'. */
static const struct {
    const char *verb;
    bool always; /* about neither: never refused */
} rows[] = {
    { "help", true },  { "completion", true }, { "up", false }, { "doctor", false },
    { "cert", false }, { "template", false },  { "gc", false },
};

int elsewhere_check(const char *verb, struct err *err)
{
    const char *server = getenv("COVE_SERVER"), *state = getenv("COVE_STATE");

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].verb, verb) == 0 && (rows[i].always || !server || !server[0]))
            return 0;
    if (server && server[0])
        return err_set(err, ERR_USAGE,
                       "%.40s: is about this host alone, and the server %.200s is named", verb,
                       server);
    return (!state || !state[0]) && server_is_elsewhere()
               ? err_set(err, ERR_USAGE,
                         "%.40s: is about this host alone, and another server is in use ('cove "
                         "context use local')",
                         verb)
               : 0;
}
