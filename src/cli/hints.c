#include "cli/hints.h"

#include "base/own.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 24

/* Verbs of docker, and what they are called here. */
static const struct {
    const char *word, *instead;
} verbs_elsewhere[] = {
    { "attach", "cove logs -f SANDBOX, or cove shell SANDBOX" },
    { "build", "cove template build NAME" },
    { "commit", "cove snapshot create SANDBOX" },
    { "container", "cove ps, cove kill, cove run" },
    { "delete", "cove kill SANDBOX" },
    { "image", "cove template ls" },
    { "images", "cove template ls" },
    { "inspect", "cove stats SANDBOX, or cove ps --json" },
    { "list", "cove ps" },
    { "ls", "cove ps" },
    { "port", "cove port-forward SANDBOX PORT" },
    { "prune", "cove gc" },
    { "pull", "cove template build NAME" },
    { "remove", "cove kill SANDBOX" },
    { "rm", "cove kill SANDBOX" },
    { "rmi", "cove template rm NAME" },
    { "start", "cove resume SANDBOX for a paused one, or cove create for a new one" },
    { "stop", "cove pause SANDBOX to keep it, or cove kill SANDBOX" },
    { "top", "cove ps SANDBOX" },
    { "unpause", "cove resume SANDBOX" },
};

static const struct {
    const char *verb, *option, *instead;
} options_elsewhere[] = {
    { "run", "rm",
      "it is not needed: the sandbox of 'cove run' ends with its command, unless --keep is given" },
    { "run", "d", "use 'cove create', then 'cove exec -d SANDBOX -- COMMAND'" },
    { "run", "detach", "use 'cove create', then 'cove exec -d SANDBOX -- COMMAND'" },
    { "run", "p", "use 'cove port-forward SANDBOX PORT' once the sandbox is there" },
    { "run", "publish", "use 'cove port-forward SANDBOX PORT' once the sandbox is there" },
    { "cp", "r", "it is not needed: directories are copied with all that is in them" },
    { "cp", "R", "it is not needed: directories are copied with all that is in them" },
    { "cp", "a", "it is not needed: modes are kept" },
    { "logs", "tail", "use 'cove logs SANDBOX | tail -n N'" },
    { "logs", "n", "use 'cove logs SANDBOX | tail -n N'" },
    { "kill", "f", "it is not needed: 'cove kill' does not ask" },
    { "kill", "s", "use 'cove exec SANDBOX -- kill -SIGNAL PID' for a process inside" },
    { "ps", "a", "it is not needed: paused sandboxes are listed, too" },
    { "ps", "all", "it is not needed: paused sandboxes are listed, too" },
};

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned hint_distance(const char *a, const char *b, unsigned most)
{
    unsigned row[3][WORD_MAX + 1];
    size_t la = strlen(a), lb = strlen(b);

    if (la > WORD_MAX || lb > WORD_MAX)
        return most + 1;
    for (size_t j = 0; j <= lb; j++)
        row[0][j] = (unsigned) j;
    for (size_t i = 1; i <= la; i++) {
        unsigned *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];

        now[0] = (unsigned) i;
        for (size_t j = 1; j <= lb; j++) {
            now[j] =
                least(before[j - 1] + (a[i - 1] != b[j - 1]), least(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], earlier[j - 2] + 1);
        }
    }
    return least(row[la % 3][lb], most + 1);
}

/* The nearest so far. */
struct nearest {
    const char *word, *name;
    unsigned distance;
};

/* One slip in a short word, two in a longer one. */
static unsigned slips(const char *word)
{
    return strlen(word) < 5 ? 1 : 2;
}

/* The first letters of a name are as near as the most slips: --cpu-time for --cpu-timeout. */
static bool begins(const char *word, const char *name)
{
    return strlen(word) >= 3 && strncmp(name, word, strlen(word)) == 0;
}

static void consider(struct nearest *n, const char *name)
{
    unsigned most = slips(n->word), distance = hint_distance(n->word, name, most);

    if (distance > most && begins(n->word, name))
        distance = most;
    if (distance <= most && (!n->name || distance < n->distance)) {
        n->name = name;
        n->distance = distance;
    }
}

static const char *say_nearest(const struct nearest *n, const char *dashes, char *out, size_t size)
{
    if (n->name)
        (void) snprintf(out, size, "; did you mean '%s%s'?", dashes, n->name);
    return out;
}

const char *hint_verb(const struct verb *const *list, size_t count, const char *word, char *out,
                      size_t size)
{
    struct nearest nearest = { .word = word };

    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(verbs_elsewhere); i++) {
        if (strcmp(verbs_elsewhere[i].word, word) == 0) {
            (void) snprintf(out, size, "; use: %s", verbs_elsewhere[i].instead);
            return out;
        }
    }
    for (size_t i = 0; i < count; i++)
        consider(&nearest, list[i]->name);
    return say_nearest(&nearest, "", out, size);
}

const char *hint_command(const struct verb *verb, const char *word, char *out, size_t size)
{
    struct nearest nearest = { .word = word };

    out[0] = '\0';
    for (size_t i = 0; i < verb->sub_count; i++)
        consider(&nearest, verb->subs[i].name);
    return say_nearest(&nearest, "", out, size);
}

const char *hint_option(const struct verb *verb, const char *word, char *out, size_t size)
{
    struct nearest nearest = { .word = word };

    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(options_elsewhere); i++) {
        if (strcmp(options_elsewhere[i].verb, verb->name) == 0 &&
            strcmp(options_elsewhere[i].option, word) == 0) {
            (void) snprintf(out, size, "; %s", options_elsewhere[i].instead);
            return out;
        }
    }
    if (!word[0] || !word[1]) /* of letters, each is near to each */
        return out;
    for (size_t i = 0; i < verb->option_count; i++)
        consider(&nearest, verb->options[i].name);
    for (size_t i = 0; verb->takes_limits && i < limit_count; i++)
        consider(&nearest, limit_table[i].name);
    return say_nearest(&nearest, "--", out, size);
}
