#include "base/own.h"
#include "cli/help/completion.h"

#define SPECIAL "[]:\\" /* what _arguments and _describe would read as their own */

static const char *const actions[] = {
    [COMPLETE_NONE] = " ",
    [COMPLETE_FILE] = "_files",
    [COMPLETE_DIR] = "_files -/",
    [COMPLETE_SANDBOX] = "_cove_sandboxes",
    [COMPLETE_TEMPLATE] = "_cove_templates",
    [COMPLETE_COPY] = "_cove_copy",
    [COMPLETE_VERB] = "_cove_verbs",
};
_Static_assert(ARRAY_LEN(actions) == COMPLETE_COUNT, "every kind has an action");

static const char head[] = "#compdef cove\n"
                           "# zsh completion for cove, written by 'cove completion zsh'\n"
                           "_cove_names() { cove \"$@\" --json 2>/dev/null | grep -oE "
                           "'\"(id|name)\": ?\"[^\"]*\"' | cut -d'\"' -f4 }\n"
                           "_cove_sandboxes() { compadd -- ${(f)\"$(_cove_names ps)\"} }\n"
                           "_cove_templates() { compadd -- ${(f)\"$(_cove_names template ls)\"} }\n"
                           "_cove_copy() { compadd -S : -- ${(f)\"$(_cove_names ps)\"}; _files }\n";

/* '--name[help]:VALUE:action', and the letter beside it. */
static void write_option(FILE *out, const struct option *o)
{
    (void) fputs(" \\\n        ", out);
    if (o->letter)
        (void) fprintf(out, "'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    else
        (void) fprintf(out, "'%s--%s[", o->kind == OPTION_LIST ? "*" : "", o->name);
    completion_quote(out, o->help, SPECIAL);
    (void) fputc(']', out);
    if (o->kind != OPTION_FLAG) {
        (void) fputc(':', out);
        completion_quote(out, o->value, SPECIAL);
        (void) fprintf(out, ":%s", actions[o->complete]);
    }
    (void) fputc('\'', out);
}

static void write_named(FILE *out, const struct verb *verb)
{
    (void) fprintf(out, "        '%s:", verb->name);
    completion_quote(out, verb->summary, SPECIAL);
    (void) fputs("'\n", out);
}

static void write_leaf(FILE *out, const char *prefix, const struct verb *verb)
{
    (void) fprintf(out, "_cove%s_%s() {\n    _arguments", prefix, verb->name);
    completion_each_option(verb, out, write_option);
    if (verb == &completion_verb)
        (void) fputs(" \\\n        '1:shell:(bash zsh fish)'\n}\n", out);
    else
        (void) fprintf(out, " \\\n        '*:operand:%s'\n}\n", actions[verb->operands]);
}

/* A list of names to choose from, and a function for each. */
static void write_choice(FILE *out, const char *name, const char *prefix,
                         const struct verb *const *rows, size_t count)
{
    (void) fprintf(out, "%s() {\n    local -a names=(\n", name);
    for (size_t i = 0; i < count; i++)
        write_named(out, rows[i]);
    (void) fputs(
        "    )\n"
        "    local curcontext=$curcontext state line\n"
        "    _arguments -C '--state[state directory]:DIR:_files -/' '--help[what it does]' "
        "'1: :->name' '*:: :->rest'\n"
        "    case $state in\n"
        "        name) _describe -t commands command names ;;\n"
        "        rest) case $words[1] in\n",
        out);
    for (size_t i = 0; i < count; i++)
        (void) fprintf(out, "            %s) _cove%s_%s ;;\n", rows[i]->name, prefix,
                       rows[i]->name);
    (void) fputs("        esac ;;\n    esac\n}\n", out);
}

static void write_verb(FILE *out, const struct verb *verb)
{
    const struct verb *rows[32];
    char name[64], prefix[64];
    size_t count = 0;

    if (!verb->sub_count) {
        write_leaf(out, "", verb);
        return;
    }
    (void) snprintf(prefix, sizeof prefix, "_%s", verb->name);
    (void) snprintf(name, sizeof name, "_cove_%s", verb->name);
    for (; count < verb->sub_count && count < ARRAY_LEN(rows); count++) {
        rows[count] = &verb->subs[count];
        write_leaf(out, prefix, rows[count]);
    }
    write_choice(out, name, prefix, rows, count);
}

void completion_zsh(FILE *out)
{
    (void) fputs(head, out);
    (void) fputs("_cove_verbs() { compadd --", out);
    for (size_t i = 0; i < verb_count; i++)
        (void) fprintf(out, " %s", verbs[i]->name);
    (void) fputs(" }\n", out);
    for (size_t i = 0; i < verb_count; i++)
        write_verb(out, verbs[i]);
    write_choice(out, "_cove", "", verbs, verb_count);
    (void) fputs("_cove \"$@\"\n", out);
}
