#include "dockerfile/dockerfile.h"

#include "base/own.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

/* What each instruction may have. `flags` are names with a blank around each. */
static const struct {
    const char *name, *flags;
    bool json, docs;
} words[] = {
    [WORD_FROM] = { "FROM", " platform ", false, false },
    [WORD_RUN] = { "RUN", " mount network ", true, true },
    [WORD_COPY] = { "COPY", " chown chmod from link ", true, true },
    [WORD_ADD] = { "ADD", " chown chmod link ", true, true },
    [WORD_ARG] = { "ARG", "", false, false },
    [WORD_ENV] = { "ENV", "", false, false },
    [WORD_WORKDIR] = { "WORKDIR", "", false, false },
    [WORD_USER] = { "USER", "", false, false },
    [WORD_SHELL] = { "SHELL", "", true, false },
    [WORD_CMD] = { "CMD", "", true, false },
    [WORD_ENTRYPOINT] = { "ENTRYPOINT", "", true, false },
    [WORD_LABEL] = { "LABEL", "", false, false },
    [WORD_EXPOSE] = { "EXPOSE", "", false, false },
};
_Static_assert(ARRAY_LEN(words) == WORD_COUNT, "every instruction has a row");

/* Docker has them; a sandbox has nothing that they could mean. */
static const char *const refused[] = { "VOLUME",     "HEALTHCHECK", "ONBUILD",
                                       "STOPSIGNAL", "MAINTAINER",  "CROSS_BUILD" };

const char *dockerfile_word_name(enum dockerfile_word word)
{
    return words[word].name;
}

int dockerfile_bad(struct err *err, unsigned line, const char *fmt, ...)
{
    char text[ERR_MSG_MAX];
    va_list args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return err_set(err, ERR_INVALID, "line %u: %s", line, text);
}

int dockerfile_at(struct err *err, unsigned line)
{
    return err_wrap(err, "line %u", line);
}

/* ---- lines of the file ---- */

struct reader {
    const char *at, *end;
    unsigned number; /* of the line that was read last */
    char escape;
};

/* One line of the file, without its end. */
static bool next_line(struct reader *r, const char **ret, size_t *ret_len)
{
    const char *newline;

    if (r->at == r->end)
        return false;
    newline = memchr(r->at, '\n', (size_t) (r->end - r->at));
    *ret = r->at;
    *ret_len = (size_t) ((newline ? newline : r->end) - r->at);
    r->at = newline ? newline + 1 : r->end;
    if (*ret_len > 0 && (*ret)[*ret_len - 1] == '\r')
        (*ret_len)--;
    r->number++;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t blanks(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && is_blank(text[n]))
        n++;
    return n;
}

/* The line continues: *len is then without the escape. Two of them are a text. */
static bool goes_on(const char *text, size_t *len, char escape)
{
    size_t n = *len;

    while (n > 0 && is_blank(text[n - 1]))
        n--;
    if (n == 0 || text[n - 1] != escape || (n > 1 && text[n - 2] == escape))
        return false;
    *len = n - 1;
    return true;
}

/* ---- directives ---- */

static int set_directive(struct reader *r, const char *name, size_t name_len, const char *value,
                         size_t len, struct err *err)
{
    if (name_len == 6 && strncasecmp(name, "escape", 6) == 0) {
        if (len != 1 || (value[0] != '\\' && value[0] != '`'))
            return dockerfile_bad(err, r->number, "the directive escape is \\ or `");
        r->escape = value[0];
    }
    if (name_len == 6 && strncasecmp(name, "syntax", 6) == 0 &&
        (len < strlen("docker/dockerfile") ||
         strncmp(value, "docker/dockerfile", strlen("docker/dockerfile")) != 0))
        return dockerfile_bad(err, r->number, "the syntax '%.*s' is not supported",
                              (int) (len < 60 ? len : 60), value);
    return 0;
}

/* Comments of the form "# name=value", before anything else. */
static int read_directives(struct reader *r, struct err *err)
{
    static const char *const known[] = { "escape", "syntax", "check" };

    for (;;) {
        struct reader before = *r;
        const char *line, *equals, *name;
        size_t len, at, name_len, i;

        if (!next_line(r, &line, &len))
            return 0;
        at = blanks(line, len);
        equals = at < len && line[at] == '#' ? memchr(line, '=', len) : NULL;
        name = line + at + 1;
        for (; equals && name < equals && is_blank(*name); name++)
            ;
        name_len = equals ? (size_t) (equals - name) : 0;
        while (name_len > 0 && is_blank(name[name_len - 1]))
            name_len--;
        for (i = 0; i < ARRAY_LEN(known); i++)
            if (name_len == strlen(known[i]) && strncasecmp(name, known[i], name_len) == 0)
                break;
        if (!equals || i == ARRAY_LEN(known)) {
            *r = before;
            return 0;
        }
        equals++;
        len -= (size_t) (equals - line);
        at = blanks(equals, len);
        while (len > at && is_blank(equals[len - 1]))
            len--;
        if (set_directive(r, name, name_len, equals + at, len - at, err) < 0)
            return -1;
    }
}

/* ---- an instruction ---- */

/* One instruction with its continuation lines as one text; NULL at the end of the file. The caller's to free. */
static int join_lines(struct reader *r, char **ret, unsigned *ret_number, struct err *err)
{
    auto_free char *text = NULL;
    size_t size = 0, total = 0;
    FILE *out = open_memstream(&text, &size);
    bool begun = false, more = true;
    const char *line;
    size_t len;

    if (!out)
        return err_set(err, ERR_NO_MEMORY, "no memory for a Dockerfile");
    while (more && next_line(r, &line, &len)) {
        size_t at = blanks(line, len);

        if (at == len || line[at] == '#') /* also between continuation lines */
            continue;
        if (!begun) {
            *ret_number = r->number;
            line += at;
            len -= at;
        }
        begun = true;
        more = goes_on(line, &len, r->escape);
        total += len;
        if (total <= DOCKERFILE_TEXT_MAX)
            (void) fwrite(line, 1, len, out);
    }
    if (fclose(out) != 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for a Dockerfile");
    if (total > DOCKERFILE_TEXT_MAX)
        return dockerfile_bad(err, *ret_number, "longer than %d bytes", DOCKERFILE_TEXT_MAX);
    for (; begun && size > 0 && is_blank(text[size - 1]); size--)
        text[size - 1] = '\0';
    *ret = begun ? take_ptr(&text) : NULL;
    return 0;
}

static int find_word(const char *text, unsigned number, struct dockerfile_line *ret,
                     const char **ret_rest, struct err *err)
{
    size_t len = strcspn(text, " \t"), i;

    for (i = 0; i < ARRAY_LEN(refused); i++)
        if (strlen(refused[i]) == len && strncasecmp(text, refused[i], len) == 0)
            return dockerfile_bad(err, number, "%s is not supported", refused[i]);
    for (i = 0; i < WORD_COUNT; i++)
        if (strlen(words[i].name) == len && strncasecmp(text, words[i].name, len) == 0)
            break;
    if (i == WORD_COUNT)
        return dockerfile_bad(err, number, "unknown instruction '%.*s'",
                              (int) (len < 40 ? len : 40), text);
    ret->word = (enum dockerfile_word) i;
    ret->number = number;
    *ret_rest = text + len + strspn(text + len, " \t");
    return 0;
}

static bool flag_known(enum dockerfile_word word, const char *name, size_t len)
{
    for (const char *at = words[word].flags; *at; at++)
        if (*at == ' ' && strncmp(at + 1, name, len) == 0 && at[1 + len] == ' ')
            return true;
    return false;
}

static int read_flags(struct dockerfile_line *line, const char **rest, struct err *err)
{
    const char *at = *rest;

    line->flags = json_array();
    while (strncmp(at, "--", 2) == 0 && at[2] && !is_blank(at[2])) {
        size_t whole = strcspn(at, " \t"), len = strcspn(at + 2, "= \t");
        json_t *had;
        size_t i;

        if (!flag_known(line->word, at + 2, len))
            return dockerfile_bad(err, line->number, "%s %.*s is not supported",
                                  words[line->word].name, (int) (len + 2 < 40 ? len + 2 : 40), at);
        json_array_foreach(line->flags, i, had)
        {
            const char *name = json_string_value(json_array_get(had, 0));

            if (strlen(name) == len && strncmp(name, at + 2, len) == 0 &&
                strcmp(name, "mount") != 0)
                return dockerfile_bad(err, line->number, "--%s is there twice", name);
        }
        (void) json_array_append_new(
            line->flags, json_pack("[s%, s%]", at + 2, len, at[2 + len] == '=' ? at + 3 + len : "",
                                   at[2 + len] == '=' ? whole - len - 3 : (size_t) 0));
        at += whole;
        at += strspn(at, " \t");
    }
    *rest = at;
    return 0;
}

/* ["a", "b"]; anything else is another form, as Docker has it. */
static json_t *json_form(const char *text)
{
    json_t *array = text[0] == '[' ? json_loads(text, 0, NULL) : NULL, *item;
    size_t i;

    json_array_foreach(array, i, item)
    {
        if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item)) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

/* ---- heredocs ---- */

/* A word <<NAME, <<-NAME, <<"NAME" or <<'NAME', perhaps behind the number of a descriptor. */
static bool is_doc(const char *word, size_t len, const char **ret_name, size_t *ret_len,
                   bool *ret_tabs, bool *ret_expand)
{
    size_t at = 0, name;
    char quote = '\0';

    while (at < len && isdigit((unsigned char) word[at]))
        at++;
    if (len - at < 3 || strncmp(word + at, "<<", 2) != 0)
        return false;
    at += 2;
    *ret_tabs = word[at] == '-';
    at += *ret_tabs;
    if (at < len && (word[at] == '"' || word[at] == '\''))
        quote = word[at++];
    for (name = at; at < len && (isalnum((unsigned char) word[at]) || strchr("_.-", word[at]));)
        at++;
    *ret_name = word + name;
    *ret_len = at - name;
    *ret_expand = !quote;
    return *ret_len > 0 && (quote ? at + 1 == len && word[at] == quote : at == len);
}

static int read_doc(struct reader *r, struct dockerfile_line *line, const char *name, size_t len,
                    bool tabs, bool expand, struct err *err)
{
    struct dockerfile_doc *docs = realloc(line->docs, (line->doc_count + 1) * sizeof *docs);
    char *text = NULL;
    size_t size = 0, got = 0;
    const char *at = NULL;
    bool found = false;
    FILE *out;

    if (!docs)
        return err_set(err, ERR_NO_MEMORY, "no memory for a heredoc");
    line->docs = docs;
    if (line->doc_count == DOCKERFILE_DOCS_MAX)
        return dockerfile_bad(err, line->number, "more than %d heredocs", DOCKERFILE_DOCS_MAX);
    out = open_memstream(&text, &size);
    while (out && !found && next_line(r, &at, &got)) {
        for (; tabs && got > 0 && *at == '\t'; at++)
            got--;
        found = got == len && memcmp(at, name, len) == 0;
        if (!found)
            (void) fprintf(out, "%.*s\n", (int) got, at);
    }
    if (!out || fclose(out) != 0) {
        free(text);
        return err_set(err, ERR_NO_MEMORY, "no memory for a heredoc");
    }
    line->docs[line->doc_count++] =
        (struct dockerfile_doc){ .name = strndup(name, len), .text = text, .expand = expand };
    if (!found)
        return dockerfile_bad(err, line->number, "the heredoc has no end '%.*s'",
                              (int) (len < 40 ? len : 40), name);
    return size > DOCKERFILE_TEXT_MAX
               ? dockerfile_bad(err, line->number, "a heredoc longer than %d bytes",
                                DOCKERFILE_TEXT_MAX)
               : 0;
}

static int read_docs(struct reader *r, struct dockerfile_line *line, struct err *err)
{
    const char *at = line->rest;

    while (*at) {
        const char *word = at, *name;
        bool tabs, expand;
        char quote = '\0';
        size_t len;

        for (; *at && (quote || !is_blank(*at)); at++) {
            if (quote ? *at == quote : *at == '"' || *at == '\'')
                quote = quote ? '\0' : *at;
            else if (*at == r->escape && at[1] && quote != '\'')
                at++;
        }
        if (is_doc(word, (size_t) (at - word), &name, &len, &tabs, &expand) &&
            read_doc(r, line, name, len, tabs, expand, err) < 0)
            return -1;
        at += strspn(at, " \t");
    }
    return 0;
}

/* ---- all of it ---- */

static void line_done(struct dockerfile_line *line)
{
    for (size_t i = 0; i < line->doc_count; i++) {
        free(line->docs[i].name);
        free(line->docs[i].text);
    }
    free(line->docs);
    free(line->rest);
    json_decref(line->flags);
    json_decref(line->exec);
}

static int read_line(struct reader *r, const char *text, unsigned number,
                     struct dockerfile_line *ret, struct err *err)
{
    const char *rest = text;

    if (find_word(text, number, ret, &rest, err) < 0 || read_flags(ret, &rest, err) < 0)
        return -1;
    ret->rest = strdup(rest);
    if (!ret->rest)
        return err_set(err, ERR_NO_MEMORY, "no memory for a Dockerfile");
    if (words[ret->word].json)
        ret->exec = json_form(rest);
    if (!rest[0])
        return dockerfile_bad(err, number, "%s needs something behind it", words[ret->word].name);
    return words[ret->word].docs && !ret->exec ? read_docs(r, ret, err) : 0;
}

static int read_all(struct reader *r, struct dockerfile *ret, struct err *err)
{
    if (read_directives(r, err) < 0)
        return -1;
    ret->escape = r->escape;
    for (;;) {
        auto_free char *text = NULL;
        struct dockerfile_line *more;
        unsigned number = 0;

        if (join_lines(r, &text, &number, err) < 0)
            return -1;
        if (!text)
            return ret->count > 0
                       ? 0
                       : err_set(err, ERR_INVALID, "line 1: the Dockerfile has no instructions");
        if (ret->count == DOCKERFILE_LINES_MAX)
            return dockerfile_bad(err, number, "more than %d instructions", DOCKERFILE_LINES_MAX);
        more = realloc(ret->lines, (ret->count + 1) * sizeof *more);
        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for a Dockerfile");
        ret->lines = more;
        ret->lines[ret->count++] = (struct dockerfile_line){ .number = number };
        if (read_line(r, text, number, &ret->lines[ret->count - 1], err) < 0)
            return -1;
    }
}

int dockerfile_parse(const char *text, size_t len, struct dockerfile *ret, struct err *err)
{
    struct reader r = { .at = text, .end = text + len, .escape = '\\' };
    struct dockerfile file = { .lines = NULL };

    if (len > DOCKERFILE_MAX)
        return err_set(err, ERR_TOO_BIG, "line 1: the Dockerfile is longer than %u bytes",
                       DOCKERFILE_MAX);
    if (memchr(text, '\0', len) || !utf8_ok(text, len))
        return err_set(err, ERR_INVALID, "line 1: the Dockerfile is not UTF-8 text");
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        r.at += 3;
    if (read_all(&r, &file, err) < 0) {
        dockerfile_done(&file);
        return -1;
    }
    *ret = file;
    return 0;
}

void dockerfile_done(struct dockerfile *file)
{
    for (size_t i = 0; i < file->count; i++)
        line_done(&file->lines[i]);
    free(file->lines);
    *file = (struct dockerfile){ .lines = NULL };
}
