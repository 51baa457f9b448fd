#include "http/part.h"

#include "base/utf8.h"
#include "http/url.h"
#include "http/value.h"

#define CHARSET "UTF-8'"

void part_begin(struct multipart *multipart)
{
    multipart->name[0] = multipart->filename[0] = multipart->type[0] = '\0';
    multipart->has_filename = false;
    multipart->fields = 0;
    multipart->head_len = multipart->line = 0;
}

static bool text_ok(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            return false;
    return utf8_ok(text, strlen(text));
}

/* 1: there, 0: not there. */
static int get_param(struct slice value, const char *name, char *out, size_t size, struct err *err)
{
    bool found;
    ssize_t len = value_param(value, name, out, size, &found);

    if (!found)
        return 0;
    if (len < 0)
        return err_set(err, ERR_INVALID,
                       "multipart: %s is not well-formed, given twice or too long", name);
    if (!text_ok(out))
        return err_set(err, ERR_INVALID, "multipart: %s is not UTF-8 without control characters",
                       name);
    return 1;
}

/* filename*=UTF-8'en'na%C3%AFve.txt (RFC 8187). Forms should not have it, but some do. */
static int get_extended(struct slice value, char *out, size_t size, struct err *err)
{
    char raw[sizeof((struct multipart *) 0)->filename];
    int r = get_param(value, "filename*", raw, sizeof raw, err);
    struct slice text, language;

    if (r <= 0)
        return r;
    text = slice_of(raw);
    if (text.len < strlen(CHARSET) ||
        !slice_is_nocase((struct slice){ raw, strlen(CHARSET) }, CHARSET))
        return err_set(err, ERR_INVALID, "multipart: filename* is not in UTF-8");
    text = (struct slice){ raw + strlen(CHARSET), text.len - strlen(CHARSET) };
    if (!slice_cut(&text, '\'', &language))
        return err_set(err, ERR_INVALID, "multipart: filename* has no language field");
    if (url_decode(text, URL_UTF8, out, size, err) < 0)
        return err_wrap(err, "multipart: filename*");
    if (!text_ok(out))
        return err_set(err, ERR_INVALID, "multipart: filename* has control characters");
    return 1;
}

static int on_disposition(struct multipart *multipart, struct slice value, struct err *err)
{
    int plain, extended, named;

    if (multipart->name[0])
        return err_set(err, ERR_INVALID, "multipart: a part has Content-Disposition twice");
    if (!slice_is_nocase(value_main(value), "form-data"))
        return err_set(err, ERR_INVALID, "multipart: Content-Disposition is not form-data");
    named = get_param(value, "name", multipart->name, sizeof multipart->name, err);
    if (named < 0)
        return -1;
    if (named == 0 || !multipart->name[0])
        return err_set(err, ERR_INVALID, "multipart: a part has no name");
    plain = get_param(value, "filename", multipart->filename, sizeof multipart->filename, err);
    if (plain < 0)
        return -1;
    extended = get_extended(value, multipart->filename, sizeof multipart->filename, err);
    multipart->has_filename = plain > 0 || extended > 0;
    return extended < 0 ? -1 : 0;
}

int part_field(struct multipart *multipart, const struct http_field *field, struct err *err)
{
    if (slice_is_nocase(field->name, "Content-Disposition"))
        return on_disposition(multipart, field->value, err);
    if (slice_is_nocase(field->name, "Content-Type") &&
        !slice_copy(field->value, multipart->type, sizeof multipart->type))
        return err_set(err, ERR_TOO_BIG, "multipart: the Content-Type of a part is too long");
    if (slice_is_nocase(field->name, "Content-Transfer-Encoding") &&
        !slice_is_nocase(field->value, "binary") && !slice_is_nocase(field->value, "8bit") &&
        !slice_is_nocase(field->value, "7bit"))
        return err_set(err, ERR_UNSUPPORTED,
                       "multipart: Content-Transfer-Encoding '%.*s' is not known",
                       SLICE_ARGS(field->value));
    return 0;
}

int part_complete(struct multipart *multipart, struct err *err)
{
    if (!multipart->name[0])
        return err_set(err, ERR_INVALID, "multipart: a part has no Content-Disposition");
    return 0;
}
