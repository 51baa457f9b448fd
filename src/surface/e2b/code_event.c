/* Two steps. The scanner walks JSON (RFC 8259; ASCII only, since our kernels write nothing else) and answers where a
 * value ends, or that it is none. Then tables say which fields an event of a type has, and which field a MIME type
 * becomes. */
#include "surface/e2b/code_event.h"

#include "base/own.h"

#include <assert.h>
#include <string.h>

/* ---- the scanner: each takes the first byte of something and returns the one behind it, or NULL ---- */

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static const char *skip_escape(const char *at, const char *end)
{
    if (at == end || !*at || !strchr("\"\\/bfnrtu", *at))
        return NULL;
    if (*at++ != 'u')
        return at;
    for (int i = 0; i < 4; i++)
        if (at == end || !is_hex(*at++))
            return NULL;
    return at;
}

static const char *skip_text(const char *at, const char *end)
{
    if (at == end || *at++ != '"')
        return NULL;
    while (at && at < end && *at != '"') {
        if (*at < 0x20 || *at > 0x7e) /* signed or not: what is no ASCII is refused */
            return NULL;
        at = *at == '\\' ? skip_escape(at + 1, end) : at + 1;
    }
    return at && at < end ? at + 1 : NULL;
}

static const char *skip_digits(const char *at, const char *end)
{
    const char *first = at;

    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at > first ? at : NULL;
}

static const char *skip_number(const char *at, const char *end)
{
    at += at < end && *at == '-';
    if (at < end && *at == '0')
        at++;
    else if (!(at = skip_digits(at, end)))
        return NULL;
    if (at < end && *at == '.' && !(at = skip_digits(at + 1, end)))
        return NULL;
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        at = skip_digits(at, end);
    }
    return at;
}

static const char *skip_word(const char *at, const char *end)
{
    static const char *const words[] = { "true", "false", "null" };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i]);

        if ((size_t) (end - at) >= len && memcmp(at, words[i], len) == 0)
            return at + len;
    }
    return NULL;
}

static const char *skip_scalar(const char *at, const char *end)
{
    if (at == end)
        return NULL;
    if (*at == '"')
        return skip_text(at, end);
    return *at == '-' || (*at >= '0' && *at <= '9') ? skip_number(at, end) : skip_word(at, end);
}

/* "name" : and blanks; what follows is the value. */
static const char *skip_name(const char *at, const char *end)
{
    at = skip_text(skip_blanks(at, end), end);
    if (!at)
        return NULL;
    at = skip_blanks(at, end);
    return at < end && *at == ':' ? skip_blanks(at + 1, end) : NULL;
}

/* Without recursion: the bits of what is open. */
struct nest {
    uint64_t is_object; /* bit n: level n is an object */
    unsigned depth;
};
static_assert(CODE_DEPTH_MAX <= 64, "a bit for every level");

static const char *open_nest(struct nest *nest, const char *at, const char *end, bool *ret_empty)
{
    bool object = *at == '{';

    if (nest->depth == CODE_DEPTH_MAX)
        return NULL;
    nest->is_object &= ~(1ull << nest->depth);
    nest->is_object |= (uint64_t) object << nest->depth;
    nest->depth++;
    at = skip_blanks(at + 1, end);
    *ret_empty = at < end && *at == (object ? '}' : ']'); /* which is close_nest's */
    return object && !*ret_empty ? skip_name(at, end) : at;
}

/* Behind a value: closes what closes here, and stands before the next value, or behind all (depth 0). */
static const char *close_nest(struct nest *nest, const char *at, const char *end)
{
    while (at && nest->depth > 0) {
        bool object = nest->is_object >> (nest->depth - 1) & 1;

        at = skip_blanks(at, end);
        if (at == end)
            return NULL;
        if (*at == ',') {
            at = skip_blanks(at + 1, end);
            return object ? skip_name(at, end) : at;
        }
        if (*at++ != (object ? '}' : ']'))
            return NULL;
        nest->depth--;
    }
    return at;
}

static const char *skip_value(const char *at, const char *end)
{
    struct nest nest = { .depth = 0 };

    do {
        bool empty = true;

        if (at == end)
            return NULL;
        if (*at == '{' || *at == '[')
            at = open_nest(&nest, at, end, &empty);
        else
            at = skip_scalar(at, end);
        if (empty) /* a value ends here; else the first one inside is next */
            at = at ? close_nest(&nest, at, end) : NULL;
    } while (at && nest.depth > 0);
    return at;
}

/* The members of an object, one by one. */
struct members {
    const char *at, *end;
    bool begun;
};

static struct members members_of(struct slice object)
{
    return (struct members){ object.at, object.at + object.len, false };
}

/* 1, 0 at the end of the object and of the text, -1: it is none. */
static int next_member(struct members *m, struct slice *ret_name, struct slice *ret_value)
{
    const char *at = skip_blanks(m->at, m->end), *name, *value;

    if (at == m->end)
        return -1;
    if (m->begun && *at == '}')
        return skip_blanks(at + 1, m->end) == m->end ? 0 : -1;
    if (*at != (m->begun ? ',' : '{'))
        return -1;
    name = skip_blanks(at + 1, m->end);
    if (!m->begun && name < m->end && *name == '}')
        return skip_blanks(name + 1, m->end) == m->end ? 0 : -1;
    value = skip_name(name, m->end);
    at = value ? skip_value(value, m->end) : NULL;
    if (!at)
        return -1;
    *ret_name = (struct slice){ name, (size_t) (skip_text(name, m->end) - name) };
    *ret_value = (struct slice){ value, (size_t) (at - value) };
    m->at = at;
    m->begun = true;
    return 1;
}

/* ---- events ---- */

enum kind { KIND_TEXT, KIND_NUMBER, KIND_BOOL, KIND_OBJECT, KIND_ANY };

static bool is_kind(struct slice value, enum kind kind)
{
    switch (kind) {
    case KIND_TEXT:
        return value.at[0] == '"';
    case KIND_NUMBER:
        return value.at[0] >= '0' && value.at[0] <= '9' && value.len <= 15 &&
               !memchr(value.at, '.', value.len) && !memchr(value.at, 'e', value.len) &&
               !memchr(value.at, 'E', value.len);
    case KIND_BOOL:
        return value.at[0] == 't' || value.at[0] == 'f';
    case KIND_OBJECT:
        return value.at[0] == '{';
    case KIND_ANY:
        break;
    }
    return true;
}

#define ON(type)    (1u << CODE_##type)
#define FIELD(name) offsetof(struct code_event, name)

static const char *const types[CODE_EVENT_COUNT] = {
    [CODE_BEGIN] = "begin",   [CODE_STDOUT] = "stdout", [CODE_STDERR] = "stderr",
    [CODE_RESULT] = "result", [CODE_ERROR] = "error",   [CODE_END] = "end",
};

/* Every field of the types it is on must be there, once. */
static const struct event_field {
    const char *name;
    size_t offset;
    enum kind kind;
    unsigned on;
} fields[] = {
    /* clang-format off */
    { "id",              FIELD(id),              KIND_TEXT,   ON(BEGIN) | ON(END) },
    { "execution_count", FIELD(execution_count), KIND_NUMBER, ON(BEGIN) },
    { "text",            FIELD(text),            KIND_TEXT,   ON(STDOUT) | ON(STDERR) },
    { "data",            FIELD(data),            KIND_OBJECT, ON(RESULT) },
    { "is_main_result",  FIELD(is_main_result),  KIND_BOOL,   ON(RESULT) },
    { "name",            FIELD(name),            KIND_TEXT,   ON(ERROR) },
    { "value",           FIELD(value),           KIND_TEXT,   ON(ERROR) },
    { "traceback",       FIELD(traceback),       KIND_TEXT,   ON(ERROR) },
    /* clang-format on */
};

static bool is_text(struct slice json, const char *text)
{
    size_t len = strlen(text);

    return json.len == len + 2 && memcmp(json.at + 1, text, len) == 0;
}

bool code_event_is(const struct code_event *event, const char *cell)
{
    return (event->type == CODE_BEGIN || event->type == CODE_END) && is_text(event->id, cell);
}

static struct slice *field_of(struct code_event *event, const struct event_field *field)
{
    return (struct slice *) (void *) ((char *) event + field->offset);
}

static int keep_member(struct code_event *event, struct slice name, struct slice value,
                       struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (!is_text(name, fields[i].name))
            continue;
        if (field_of(event, &fields[i])->at)
            return err_set(err, ERR_PROTOCOL, "%s: twice", fields[i].name);
        if (!is_kind(value, fields[i].kind))
            return err_set(err, ERR_PROTOCOL, "%s: of the wrong kind", fields[i].name);
        *field_of(event, &fields[i]) = value;
    }
    return 0; /* what is unknown is checked, and dropped */
}

static int find_type(struct code_event *event, struct slice type, struct err *err)
{
    size_t t = 0;

    while (t < CODE_EVENT_COUNT && !(type.at && is_text(type, types[t])))
        t++;
    if (t == CODE_EVENT_COUNT)
        return err_set(err, ERR_PROTOCOL, "an event of no known type");
    event->type = (enum code_event_type) t;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if ((fields[i].on & (1u << t)) && !field_of(event, &fields[i])->at)
            return err_set(err, ERR_PROTOCOL, "%s: missing in %s", fields[i].name, types[t]);
    return 0;
}

int code_event_parse(const char *line, size_t len, struct code_event *ret, struct err *err)
{
    struct members members = members_of((struct slice){ line, len });
    struct slice name, value, type = { NULL, 0 };
    struct code_event event = { .type = CODE_EVENT_COUNT };
    int r;

    while ((r = next_member(&members, &name, &value)) == 1) {
        if (is_text(name, "type") && type.at)
            return err_set(err, ERR_PROTOCOL, "type: twice");
        if (is_text(name, "type"))
            type = value;
        else if (keep_member(&event, name, value, err) < 0)
            return -1;
    }
    if (r < 0)
        return err_set(err, ERR_PROTOCOL, "no JSON object");
    if (find_type(&event, type, err) < 0)
        return -1;
    *ret = event;
    return 0;
}

/* ---- in E2B's words ---- */

static const struct mime {
    const char *type, *field;
    enum kind kind;
} mimes[] = {
    /* clang-format off */
    { "text/plain",             "text",       KIND_TEXT },
    { "text/html",              "html",       KIND_TEXT },
    { "text/markdown",          "markdown",   KIND_TEXT },
    { "image/svg+xml",          "svg",        KIND_TEXT },
    { "image/png",              "png",        KIND_TEXT },
    { "image/jpeg",             "jpeg",       KIND_TEXT },
    { "application/pdf",        "pdf",        KIND_TEXT },
    { "text/latex",             "latex",      KIND_TEXT },
    { "application/json",       "json",       KIND_ANY },
    { "application/javascript", "javascript", KIND_TEXT },
    { "e2b/data",               "data",       KIND_OBJECT },
    { "e2b/chart",              "chart",      KIND_OBJECT },
    /* clang-format on */
};

struct writer {
    code_put_fn put;
    void *context;
    struct err *err;
    int r; /* -1: a put failed, and nothing more is written */
};

static void put_slice(struct writer *w, struct slice slice)
{
    if (w->r == 0)
        w->r = w->put(w->context, slice.at, slice.len, w->err);
}

static void put_text(struct writer *w, const char *text)
{
    put_slice(w, slice_of(text));
}

/* ,"name":value */
static void put_field(struct writer *w, const char *name, struct slice value)
{
    put_text(w, ",\"");
    put_text(w, name);
    put_text(w, "\":");
    put_slice(w, value);
}

/* The repr of a text loses its outer quotes, as E2B's users know it. In JSON a double quote is \". */
static struct slice without_quotes(struct slice json)
{
    const char *last = json.at + json.len - 1;

    if (json.len >= 4 && json.at[1] == '\'' && last[-1] == '\'')
        return (struct slice){ json.at + 2, json.len - 4 };
    if (json.len >= 6 && json.at[1] == '\\' && json.at[2] == '"' && last[-1] == '"')
        return (struct slice){ json.at + 3, json.len - 6 };
    return (struct slice){ json.at + 1, json.len - 2 };
}

static const struct mime *mime_of(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(mimes); i++)
        if (is_text(name, mimes[i].type))
            return &mimes[i];
    return NULL;
}

static void put_mime(struct writer *w, const struct mime *mime, struct slice value)
{
    if (strcmp(mime->field, "text") != 0) {
        put_field(w, mime->field, value);
        return;
    }
    put_text(w, ",\"text\":\"");
    put_slice(w, without_quotes(value));
    put_text(w, "\"");
}

static void put_bundle(struct writer *w, struct slice bundle)
{
    struct members members = members_of(bundle);
    struct slice name, value;
    uint32_t done = 0;
    bool extra = false;

    while (next_member(&members, &name, &value) == 1) {
        const struct mime *mime = mime_of(name);
        uint32_t bit = mime ? 1u << (mime - mimes) : 0;

        if (mime && !(done & bit) && is_kind(value, mime->kind))
            put_mime(w, mime, value);
        done |= bit;
    }
    for (members = members_of(bundle); next_member(&members, &name, &value) == 1;) {
        if (mime_of(name))
            continue;
        put_text(w, extra ? "," : ",\"extra\":{");
        put_slice(w, name);
        put_text(w, ":");
        put_slice(w, value);
        extra = true;
    }
    if (extra)
        put_text(w, "}");
}

int code_event_put(const struct code_event *event, const char *now, code_put_fn put, void *context,
                   struct err *err)
{
    struct writer w = { .put = put, .context = context, .err = err };

    if (event->type == CODE_END)
        return 0;
    put_text(&w, "{\"type\":\"");
    put_text(&w, event->type == CODE_BEGIN ? "number_of_executions" : types[event->type]);
    put_text(&w, "\"");
    switch (event->type) {
    case CODE_BEGIN:
        put_field(&w, "execution_count", event->execution_count);
        break;
    case CODE_STDOUT:
    case CODE_STDERR:
        put_field(&w, "text", event->text);
        put_text(&w, ",\"timestamp\":\"");
        put_text(&w, now);
        put_text(&w, "\"");
        break;
    case CODE_RESULT:
        put_bundle(&w, event->data);
        put_field(&w, "is_main_result", event->is_main_result);
        break;
    case CODE_ERROR:
        put_field(&w, "name", event->name);
        put_field(&w, "value", event->value);
        put_field(&w, "traceback", event->traceback);
        break;
    case CODE_END:
    case CODE_EVENT_COUNT:
        break;
    }
    put_text(&w, "}\n");
    return w.r;
}
