#include "wire/qmp.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

/* Up to the first sign that would need to be understood. */
static void read_reason(const char *line, char *why, size_t size)
{
    static const char key[] = "\"desc\": \"";
    const char *at = strstr(line, key);

    (void) snprintf(why, size, "%s", at ? at + sizeof key - 1 : "");
    why[strcspn(why, "\"\\")] = '\0';
    for (char *c = why; *c; c++)
        if ((unsigned char) *c < ' ' || (unsigned char) *c > '~')
            *c = '?';
    if (!why[0])
        (void) snprintf(why, size, "no reason is told");
}

enum qmp_said qmp_read(const char *line, char *why, size_t size)
{
    if (begins(line, "{\"return\":"))
        return QMP_RETURN;
    if (begins(line, "{\"error\":")) {
        read_reason(line, why, size);
        return QMP_ERROR;
    }
    if (!begins(line, "{\"timestamp\":") || !strstr(line, "\"event\": \"MIGRATION\""))
        return QMP_OTHER;
    if (strstr(line, "\"status\": \"completed\""))
        return QMP_MOVED;
    return strstr(line, "\"status\": \"failed\"") ? QMP_FAILED : QMP_OTHER;
}
