/* Rules on removing, modes and owners. */
#include "policy/judge.h"

#include "base/own.h"
#include "policy/paths.h"

#include <stdlib.h>
#include <string.h>

/* What it means to lose all of this place; RULE_NONE: nothing special. */
static enum rule loss_of(struct analysis *an, const struct field *target)
{
    const char *path = path_resolve(an, target->text);
    const char *unknown = strchr(path, UNKNOWN);
    bool only_top = *path == '/' && !strchr(path + 1, '/');
    bool here = !strcmp(target->text, "*") || !strcmp(target->text, "./*") ||
                !strcmp(target->text, ".") || !strcmp(target->text, "./");

    if (!strcmp(path, "/") || !strcmp(path, "/*") || !strcmp(path, "/.*"))
        return RULE_RM_ROOT;
    if (target->glob && only_top && strpbrk(path, "*?["))
        return RULE_RM_ROOT;
    if (path_is_system_tree(path))
        return RULE_RM_SYSTEM;
    /* A caller's working directory is often its home; to clear it is its own business. */
    if (here && strcmp(an->cwd, an->policy->workdir) == 0)
        return RULE_RM_ALL;
    if (path_is_home(an->policy, path))
        return RULE_RM_HOME;
    if (unknown) {
        char *known = arena_text(&an->arena, path, (size_t) (unknown - path));
        char *slash = strrchr(known, '/');

        if (!slash || slash == known)
            return RULE_RM_UNKNOWN;
        *slash = '\0';
        return path_is_system_tree(known) || !strcmp(known, "/home") ? RULE_RM_UNKNOWN : RULE_NONE;
    }
    return here ? RULE_RM_ALL : RULE_NONE;
}

static void rm(struct analysis *an, const struct command *c)
{
    bool recursive = command_flag(c, 'r', "recursive") || command_flag(c, 'R', NULL);
    const struct field *target;

    if (command_has(c, "--no-preserve-root"))
        violate(an, RULE_RM_ROOT, c->at, c->shown);
    for (size_t i = 0; recursive && (target = command_operand(c, i)); i++)
        violate(an, loss_of(an, target), c->at, c->shown);
}

/* mv DIR /dev/null loses it as rm does. */
static void mv(struct analysis *an, const struct command *c)
{
    const struct field *target, *last = &c->argv[c->argc - 1];

    if (c->argc < 3)
        return;
    for (size_t i = 0; (target = command_operand(c, i)) && target != last; i++) {
        enum rule rule = loss_of(an, target);

        if (strcmp(last->text, "/dev/null") == 0 || rule == RULE_RM_ROOT || rule == RULE_RM_SYSTEM)
            violate(an, rule, c->at, c->shown);
    }
}

static void rsync(struct analysis *an, const struct command *c)
{
    for (size_t i = 1; i < c->argc; i++)
        if (strncmp(c->argv[i].text, "--delete", 8) == 0) {
            enum rule rule = loss_of(an, &c->argv[c->argc - 1]);

            if (rule != RULE_RM_ALL)
                violate(an, rule, c->at, c->shown);
        }
}

/* find PLACE -delete, or -exec rm: all of the place unless something selects. */
static void find(struct analysis *an, const struct command *c)
{
    static const char *const selects[] = { "-name",  "-iname", "-path",  "-ipath", "-regex",
                                           "-mtime", "-mmin",  "-newer", "-size",  "-empty",
                                           "-user",  "-perm",  "-atime", "-ctime", "-maxdepth" };
    bool removes = command_has(c, "-delete"), all = true;

    for (size_t i = 1; i + 1 < c->argc; i++)
        if (strncmp(c->argv[i].text, "-exec", 5) == 0 &&
            (!strcmp(c->argv[i + 1].text, "rm") || !strcmp(c->argv[i + 1].text, "shred") ||
             !strcmp(c->argv[i + 1].text, "/bin/rm")))
            removes = true;
    for (size_t i = 0; i < ARRAY_LEN(selects); i++)
        all &= !command_has(c, selects[i]);
    for (size_t i = 1; removes && i < c->argc && c->argv[i].text[0] != '-'; i++) {
        enum rule rule = loss_of(an, &c->argv[i]);

        if (all)
            violate(an, rule, c->at, c->shown);
        else if (rule == RULE_RM_ROOT || rule == RULE_RM_SYSTEM)
            violate(an, RULE_RM_UNKNOWN, c->at, c->shown);
    }
}

static void chmod_(struct analysis *an, const struct command *c)
{
    const struct field *mode = command_operand(c, 0), *target;
    bool recursive = command_flag(c, 'R', "recursive"), open;
    char *end;
    long bits;

    if (!mode)
        return;
    bits = strtol(mode->text, &end, 8);
    if (*end)
        bits = 0;
    if ((bits & 06000) || (strchr(mode->text, 's') && strpbrk(mode->text, "+=") && *end))
        violate(an, RULE_SETUID, c->at, c->shown);
    if (!recursive)
        return;
    open = (bits & 2) || strstr(mode->text, "o+w") || strstr(mode->text, "a+w") ||
           strstr(mode->text, "a+rw") || strstr(mode->text, "a=rw") ||
           strncmp(mode->text, "+rw", 3) == 0;
    for (size_t i = 1; (target = command_operand(c, i)); i++) {
        enum rule loss = loss_of(an, target);

        if (loss == RULE_RM_ROOT || loss == RULE_RM_SYSTEM)
            violate(an, RULE_SYSTEM_MODE, c->at, c->shown);
        else if (open)
            violate(an, RULE_WORLD_WRITABLE, c->at, c->shown);
    }
}

static void chown_(struct analysis *an, const struct command *c)
{
    const struct field *owner = command_operand(c, 0), *target;

    if (!owner)
        return;
    if (strncmp(owner->text, "root", 4) == 0 || !strcmp(owner->text, "0") ||
        strncmp(owner->text, "0:", 2) == 0)
        violate(an, RULE_CHOWN_ROOT, c->at, c->shown);
    for (size_t i = 1; command_flag(c, 'R', "recursive") && (target = command_operand(c, i)); i++) {
        enum rule loss = loss_of(an, target);

        if (loss == RULE_RM_ROOT || loss == RULE_RM_SYSTEM)
            violate(an, RULE_SYSTEM_MODE, c->at, c->shown);
    }
}

static void install(struct analysis *an, const struct command *c)
{
    const struct field *mode = command_value(an, c, 'm', "mode");

    if (mode && ((strtol(mode->text, NULL, 8) & 06000) || strstr(mode->text, "+s")))
        violate(an, RULE_SETUID, c->at, c->shown);
}

static void dd(struct analysis *an, const struct command *c)
{
    for (size_t i = 1; i < c->argc; i++)
        if (strncmp(c->argv[i].text, "of=/dev/", 8) == 0 && is_unknown(c->argv[i].text))
            violate(an, RULE_DISK_WRITE, c->at, c->shown);
}

static const struct {
    const char *name;
    void (*judge)(struct analysis *an, const struct command *c);
} files[] = {
    { "rm", rm },           { "srm", rm },       { "mv", mv },        { "rsync", rsync },
    { "find", find },       { "chmod", chmod_ }, { "chown", chown_ }, { "chgrp", chown_ },
    { "install", install }, { "dd", dd },
};

void judge_files(struct analysis *an, const struct command *c)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (strcmp(c->name, files[i].name) == 0)
            files[i].judge(an, c);
}
