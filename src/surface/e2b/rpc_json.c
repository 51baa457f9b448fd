/* Messages as JSON: what protobuf's JSON mapping allows a client to send. */
#include "surface/e2b/rpc.h"

#include "base/base64.h"
#include "base/own.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_LEN 64
#define USER_MAX     256

int rpc_user(struct exchange *x, const char **ret, struct err *err)
{
    struct slice header = head_get(exchange_head(x), "Authorization");
    uint8_t text[USER_MAX];
    ssize_t n;

    *ret = NULL;
    if (!header.at)
        return 0;
    if (exchange_param(x, "user")[0]) {
        *ret = exchange_param(x, "user");
        return 0;
    }
    if (header.len < 6 || strncasecmp(header.at, "Basic ", 6) != 0)
        return err_set(err, ERR_NO_USER, "Authorization: only Basic is understood");
    header = slice_trim((struct slice){ header.at + 6, header.len - 6 });
    n = header.len / 4 * 3 < sizeof text ? base64_get(header.at, header.len, text) : -1;
    if (n < 0 || memchr(text, '\0', (size_t) n))
        return err_set(err, ERR_NO_USER, "Authorization: not the base64 of a user and a colon");
    text[n] = '\0';
    text[strcspn((char *) text, ":")] = '\0';
    if (text[0] == '\0')
        return 0;
    if (exchange_set_param(x, "user", (char *) text) < 0)
        return err_set(err, ERR_INTERNAL, "no room for the name of a user");
    *ret = exchange_param(x, "user");
    return 0;
}

json_t *rpc_field(json_t *message, const char *name)
{
    json_t *value = json_object_get(message, name);
    char snake[2 * NAME_MAX_LEN];
    size_t n = 0;

    if (!value) {
        for (const char *c = name; *c && n < sizeof snake - 3; c++) {
            if (isupper((unsigned char) *c))
                snake[n++] = '_';
            snake[n++] = (char) tolower((unsigned char) *c);
        }
        snake[n] = '\0';
        value = json_object_get(message, snake);
    }
    return json_is_null(value) ? NULL : value;
}

static int wrong(const char *name, const char *wanted, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s: %s is needed", name, wanted);
}

int rpc_text(json_t *message, const char *name, const char **ret, struct err *err)
{
    json_t *value = rpc_field(message, name);

    if (value && !json_is_string(value))
        return wrong(name, "a text", err);
    if (value)
        *ret = json_string_value(value);
    return 0;
}

int rpc_bool(json_t *message, const char *name, bool *ret, struct err *err)
{
    json_t *value = rpc_field(message, name);

    if (value && !json_is_boolean(value))
        return wrong(name, "true or false", err);
    if (value)
        *ret = json_is_true(value);
    return 0;
}

static bool read_int(json_t *value, int64_t *ret)
{
    const char *text = json_string_value(value);
    double real = json_real_value(value);
    char *end;

    if (json_is_integer(value)) {
        *ret = json_integer_value(value);
        return true;
    }
    if (json_is_real(value)) { /* 3.0 and 1e3 are whole, too */
        *ret = real > -9e15 && real < 9e15 ? (int64_t) real : 0;
        return real > -9e15 && real < 9e15 && (double) *ret == real;
    }
    if (!text || !(isdigit((unsigned char) text[0]) || text[0] == '-'))
        return false;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && end != text;
}

int rpc_int(json_t *message, const char *name, int64_t least, int64_t most, int64_t *ret,
            struct err *err)
{
    json_t *value = rpc_field(message, name);
    int64_t number;

    if (!value)
        return 0;
    if (!read_int(value, &number))
        return wrong(name, "a whole number", err);
    if (number < least || number > most)
        return err_set(err, ERR_INVALID, "%s: is not from %" PRId64 " to %" PRId64, name, least,
                       most);
    *ret = number;
    return 0;
}

int rpc_object(json_t *message, const char *name, json_t **ret, struct err *err)
{
    json_t *value = rpc_field(message, name);

    if (value && !json_is_object(value))
        return wrong(name, "an object", err);
    if (value)
        *ret = value;
    return 0;
}

int rpc_array(json_t *message, const char *name, json_t **ret, struct err *err)
{
    json_t *value = rpc_field(message, name);

    if (value && !json_is_array(value))
        return wrong(name, "an array", err);
    if (value)
        *ret = value;
    return 0;
}

int rpc_bytes(json_t *message, const char *name, uint8_t **ret, size_t *ret_len, struct err *err)
{
    json_t *value = rpc_field(message, name);
    auto_free char *text = NULL;
    size_t len = json_string_length(value);
    uint8_t *bytes;
    ssize_t n;

    if (!value)
        return 0;
    if (!json_is_string(value))
        return wrong(name, "base64", err);
    text = malloc(len + 4);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for a message");
    memcpy(text, json_string_value(value), len);
    for (size_t i = 0; i < len; i++)
        text[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    while (len % 4 != 0)
        text[len++] = '=';
    bytes = malloc(len / 4 * 3 + 1);
    if (!bytes)
        return err_set(err, ERR_NO_MEMORY, "no memory for a message");
    n = base64_get(text, len, bytes);
    if (n < 0) {
        free(bytes);
        return wrong(name, "base64", err);
    }
    *ret = bytes;
    *ret_len = (size_t) n;
    return 0;
}

int rpc_enum(json_t *message, const char *name, const struct rpc_name *rows, size_t count, int *ret,
             struct err *err)
{
    json_t *value = rpc_field(message, name);
    const char *text = json_string_value(value);

    if (!value)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (text ? strcmp(text, rows[i].name) == 0
                 : json_is_integer(value) && json_integer_value(value) == rows[i].number) {
            *ret = rows[i].number;
            return 0;
        }
    return wrong(name, "one of its names", err);
}

json_t *rpc_int64(int64_t value)
{
    char text[24];

    (void) snprintf(text, sizeof text, "%" PRId64, value);
    return json_string(text);
}
