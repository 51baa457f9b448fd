#include "base/own.h"
#include "cli/help/completion.h"
#include "wire/limits.h"

static const char *const actions[] = {
    [COMPLETE_NONE] = ":",
    [COMPLETE_FILE] = "_cove_files",
    [COMPLETE_DIR] = "_cove_dirs",
    [COMPLETE_SANDBOX] = "_cove_words \"$(_cove_sandboxes)\"",
    [COMPLETE_TEMPLATE] = "_cove_words \"$(_cove_templates)\"",
    [COMPLETE_COPY] = "_cove_copy",
    [COMPLETE_VERB] = "_cove_words \"$verbs\"",
};
_Static_assert(ARRAY_LEN(actions) == COMPLETE_COUNT, "every kind has an action");

static const char head[] =
    "# bash completion for cove, written by 'cove completion bash'\n"
    "_cove_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
    "_cove_files() { mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); compopt -o filenames; }\n"
    "_cove_dirs() { mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); compopt -o filenames; }\n"
    "_cove_sandboxes() { cove \"${state[@]}\" ps --json 2>/dev/null |\n"
    "    grep -oE '\"(id|name)\": ?\"[^\"]*\"' | cut -d'\"' -f4; }\n"
    "_cove_templates() { cove \"${state[@]}\" template ls --json 2>/dev/null |\n"
    "    grep -oE '\"name\": ?\"[^\"]*\"' | cut -d'\"' -f4; }\n"
    "_cove_copy() {\n"
    "    _cove_files\n"
    "    local name\n"
    "    for name in $(_cove_sandboxes); do\n"
    "        [[ $name: == \"$cur\"* ]] && COMPREPLY+=(\"$name:\") && compopt -o nospace\n"
    "    done\n"
    "}\n"
    "_cove() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' i\n"
    "    local state=() options='' verbs=";

static const char find_verb[] =
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "            --state) state=(--state \"${COMP_WORDS[i+1]}\"); ((i++)) ;;\n"
    "            -*) ;;\n"
    "            *) verb=${COMP_WORDS[i]}; break ;;\n"
    "        esac\n"
    "    done\n"
    "    [[ $prev == --state ]] && { _cove_dirs; return; }\n"
    "    case $verb in\n"
    "        '') _cove_words \"$verbs --state --help --version\"; return ;;\n";

/* `--name) action; return ;;` for each option that takes a value. */
static void value_cases(const struct verb *verb, FILE *out)
{
    for (size_t i = 0; i < verb->option_count; i++) {
        const struct option *o = &verb->options[i];

        if (o->kind == OPTION_FLAG)
            continue;
        (void) fprintf(out, "                --%s", o->name);
        if (o->letter)
            (void) fprintf(out, "|-%c", o->letter);
        (void) fprintf(out, ") %s; return ;;\n", actions[o->complete]);
    }
    for (size_t i = 0; verb->takes_limits && i < limit_count; i++)
        (void) fprintf(out, "                --%s) return ;;\n", limit_table[i].name);
}

static void option_words(const struct verb *verb, FILE *out)
{
    for (size_t i = 0; i < verb->option_count; i++)
        (void) fprintf(out, "--%s ", verb->options[i].name);
    for (size_t i = 0; verb->takes_limits && i < limit_count; i++)
        (void) fprintf(out, "--%s ", limit_table[i].name);
    (void) fputs("--state --help", out);
}

static void verb_case(const struct verb *verb, FILE *out)
{
    (void) fprintf(out, "        %s)\n            case $prev in\n", verb->name);
    value_cases(verb, out);
    for (size_t i = 0; i < verb->sub_count; i++)
        value_cases(&verb->subs[i], out);
    (void) fprintf(out, "                *) ;;\n            esac\n            options=\"");
    option_words(verb, out);
    for (size_t i = 0; i < verb->sub_count; i++)
        for (size_t k = 0; k < verb->subs[i].option_count; k++)
            (void) fprintf(out, " --%s", verb->subs[i].options[k].name);
    (void) fprintf(out,
                   "\"\n            [[ $cur == -* ]] && { _cove_words \"$options\"; return; }\n");
    if (verb->sub_count) {
        (void) fprintf(out, "            [[ $prev == %s ]] && { _cove_words \"", verb->name);
        for (size_t i = 0; i < verb->sub_count; i++)
            (void) fprintf(out, "%s%s", i ? " " : "", verb->subs[i].name);
        (void) fprintf(out, "\"; return; }\n");
    }
    (void) fprintf(out, "            %s ;;\n",
                   verb == &completion_verb ? "_cove_words \"bash zsh fish\""
                                            : actions[verb->operands]);
}

void completion_bash(FILE *out)
{
    (void) fputs(head, out);
    (void) fputc('"', out);
    for (size_t i = 0; i < verb_count; i++)
        (void) fprintf(out, "%s%s", i ? " " : "", verbs[i]->name);
    (void) fprintf(out, "\"\n%s", find_verb);
    for (size_t i = 0; i < verb_count; i++)
        verb_case(verbs[i], out);
    (void) fputs("    esac\n}\ncomplete -F _cove cove\n", out);
}
