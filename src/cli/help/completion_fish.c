#include "base/own.h"
#include "cli/help/completion.h"

#define SPECIAL "\\"

/* Behind `complete -c cove`: what is offered for a value or an operand. */
static const char *const actions[] = {
    [COMPLETE_NONE] = "",
    [COMPLETE_FILE] = " -F",
    [COMPLETE_DIR] = " -a '(__fish_complete_directories)'",
    [COMPLETE_SANDBOX] = " -a '(__cove_names ps)'",
    [COMPLETE_TEMPLATE] = " -a '(__cove_names template ls)'",
    [COMPLETE_COPY] = " -F -a '(__cove_names ps):'",
    [COMPLETE_VERB] = " -a '(__cove_verbs)'",
};
_Static_assert(ARRAY_LEN(actions) == COMPLETE_COUNT, "every kind has an action");

static const char head[] =
    "# fish completion for cove, written by 'cove completion fish'\n"
    "function __cove_words\n"
    "    set -l words (commandline -opc)\n"
    "    set -l skip 0\n"
    "    for word in $words[2..-1]\n"
    "        if test $skip = 1\n"
    "            set skip 0\n"
    "            continue\n"
    "        end\n"
    "        switch $word\n"
    "            case --state\n"
    "                set skip 1\n"
    "            case '-*'\n"
    "            case '*'\n"
    "                echo $word\n"
    "        end\n"
    "    end\n"
    "end\n"
    "function __cove_none\n"
    "    test (count (__cove_words)) -eq 0\n"
    "end\n"
    "function __cove_only\n"
    "    set -l words (__cove_words)\n"
    "    test (count $words) -eq 1; and test \"$words[1]\" = \"$argv[1]\"\n"
    "end\n"
    "function __cove_at\n"
    "    set -l words (__cove_words)\n"
    "    test (count $words) -ge (count $argv); or return 1\n"
    "    for i in (seq (count $argv))\n"
    "        test \"$words[$i]\" = \"$argv[$i]\"; or return 1\n"
    "    end\n"
    "end\n"
    "function __cove_names\n"
    "    cove $argv --json 2>/dev/null | grep -oE '\"(id|name)\": ?\"[^\"]*\"' | cut -d'\"' -f4\n"
    "end\n"
    "complete -c cove -f\n"
    "complete -c cove -n __cove_none -l state -x -a '(__fish_complete_directories)' -d 'state "
    "directory'\n"
    "complete -c cove -n __cove_none -l help -d 'what cove can do'\n"
    "complete -c cove -n __cove_none -l version -d 'which cove this is'\n";

/* Where the rows below count: "run", "template build". One writer, one script. */
static char where[128];

static void write_option(FILE *out, const struct option *o)
{
    (void) fprintf(out, "complete -c cove -n '__cove_at %s' -l %s", where, o->name);
    if (o->letter)
        (void) fprintf(out, " -s %c", o->letter);
    if (o->kind != OPTION_FLAG)
        (void) fprintf(out, " -r%s", actions[o->complete]);
    (void) fputs(" -d '", out);
    completion_quote(out, o->help, SPECIAL);
    (void) fputs("'\n", out);
}

static void write_named(FILE *out, const char *when, const struct verb *verb)
{
    (void) fprintf(out, "complete -c cove -n '%s' -a %s -d '", when, verb->name);
    completion_quote(out, verb->summary, SPECIAL);
    (void) fputs("'\n", out);
}

static void write_leaf(FILE *out, const struct verb *verb)
{
    completion_each_option(verb, out, write_option);
    if (verb == &completion_verb)
        (void) fprintf(out, "complete -c cove -n '__cove_at %s' -a 'bash zsh fish'\n", where);
    else if (actions[verb->operands][0])
        (void) fprintf(out, "complete -c cove -n '__cove_at %s'%s\n", where,
                       actions[verb->operands]);
}

static void write_verb(FILE *out, const struct verb *verb)
{
    char only[64];

    write_named(out, "__cove_none", verb);
    (void) snprintf(where, sizeof where, "%s", verb->name);
    if (!verb->sub_count)
        write_leaf(out, verb);
    (void) snprintf(only, sizeof only, "__cove_only %s", verb->name);
    for (size_t i = 0; i < verb->sub_count; i++) {
        write_named(out, only, &verb->subs[i]);
        (void) snprintf(where, sizeof where, "%s %s", verb->name, verb->subs[i].name);
        write_leaf(out, &verb->subs[i]);
    }
}

void completion_fish(FILE *out)
{
    (void) fputs(head, out);
    (void) fputs("function __cove_verbs\n    printf '%s\\n'", out);
    for (size_t i = 0; i < verb_count; i++)
        (void) fprintf(out, " %s", verbs[i]->name);
    (void) fputs("\nend\n", out);
    for (size_t i = 0; i < verb_count; i++)
        write_verb(out, verbs[i]);
}
