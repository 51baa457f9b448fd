#include "surface/e2b/files.h"

#include "check.h"

#include <string.h>

/* A field of the entry as text; "" if it is absent. */
static const char *field(const struct agent_reply *reply, const char *name, char *out, size_t size)
{
    json_t *entry = e2b_entry_json(reply), *value = json_object_get(entry, name);

    if (json_is_integer(value))
        (void) snprintf(out, size, "%d", (int) json_integer_value(value));
    else
        (void) snprintf(out, size, "%s", value ? json_string_value(value) : "");
    json_decref(entry);
    return out;
}

static void permissions_are_as_go_writes_them(void)
{
    static const struct {
        enum agent_entry_type type;
        uint32_t mode;
        const char *text;
    } rows[] = {
        { ENTRY_FILE, 0644, "-rw-r--r--" },      { ENTRY_FILE, 0, "----------" },
        { ENTRY_DIR, 0755, "drwxr-xr-x" },       { ENTRY_DIR, 01777, "dtrwxrwxrwx" },
        { ENTRY_LINK, 0777, "Lrwxrwxrwx" },      { ENTRY_FILE, 04755, "urwxr-xr-x" },
        { ENTRY_FILE, 02711, "grwx--x--x" },     { ENTRY_CHAR, 0666, "Dcrw-rw-rw-" },
        { ENTRY_BLOCK, 0660, "Drw-rw----" },     { ENTRY_FIFO, 0600, "prw-------" },
        { ENTRY_SOCKET, 0755, "Srwxr-xr-x" },    { ENTRY_DIR, 07777, "dugtrwxrwxrwx" },
        { ENTRY_CHAR, 07777, "Dugctrwxrwxrwx" },
    };
    char out[64];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct agent_reply reply = { .path = "/x", .type = rows[i].type, .mode = rows[i].mode };

        CHECK_STR(field(&reply, "permissions", out, sizeof out), rows[i].text);
    }
}

static void times_have_as_many_digits_as_they_need(void)
{
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = {
        { 0, "1970-01-01T00:00:00Z" },
        { 1580702706789000000, "2020-02-03T04:05:06.789Z" },
        { 1580702706000001000, "2020-02-03T04:05:06.000001Z" },
        { 1580702706000000001, "2020-02-03T04:05:06.000000001Z" },
        { -1, "1969-12-31T23:59:59.999999999Z" },
    };
    char out[64];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct agent_reply reply = { .path = "/x", .type = ENTRY_FILE, .mtime_ns = rows[i].ns };

        CHECK_STR(field(&reply, "modifiedTime", out, sizeof out), rows[i].text);
    }
    /* The furthest that an agent can say. */
    for (int i = 0; i < 2; i++) {
        struct agent_reply reply = { .path = "/x", .mtime_ns = i ? INT64_MAX : INT64_MIN };

        CHECK(field(&reply, "modifiedTime", out, sizeof out)[0] != '\0');
    }
}

static void links_are_told_by_what_they_lead_to(void)
{
    struct agent_reply link = { .path = "/a/l",
                                .type = ENTRY_LINK,
                                .mode = 0777,
                                .target = "/a/f",
                                .target_type = ENTRY_FILE,
                                .target_mode = 04640 };
    char out[64];

    CHECK_STR(field(&link, "type", out, sizeof out), "FILE_TYPE_FILE");
    CHECK_STR(field(&link, "mode", out, sizeof out), "416"); /* 0640 */
    CHECK_STR(field(&link, "symlinkTarget", out, sizeof out), "/a/f");
    link.target_type = ENTRY_NONE;
    link.target_mode = 0;
    CHECK_STR(field(&link, "type", out, sizeof out), "FILE_TYPE_UNSPECIFIED");
    CHECK_STR(field(&link, "symlinkTarget", out, sizeof out), "/a/l");
}

static void what_an_agent_leaves_out_or_breaks_is_borne(void)
{
    static const char odd[] = "k1\0v1\0k2";
    static const char broken[] = "k\0\xff\0";
    struct agent_reply reply = { .path = NULL, .type = 99 };
    struct texts attrs = { .data = odd, .len = sizeof odd };
    json_t *json = e2b_metadata_json(&attrs);
    char out[64];

    CHECK_STR(field(&reply, "type", out, sizeof out), "FILE_TYPE_UNSPECIFIED");
    CHECK_STR(field(&reply, "owner", out, sizeof out), "0");
    reply.path = "/\xff";
    CHECK_STR(field(&reply, "name", out, sizeof out), "\xef\xbf\xbd");
    reply.path = "/";
    CHECK_STR(field(&reply, "name", out, sizeof out), "/");
    CHECK_INT((long) json_object_size(json), 1); /* a name without a value is none */
    json_decref(json);
    attrs = (struct texts){ .data = broken, .len = sizeof broken - 1 };
    CHECK(e2b_metadata_json(&attrs) == NULL);
}

CHECK_MAIN(T(permissions_are_as_go_writes_them), T(times_have_as_many_digits_as_they_need),
           T(links_are_told_by_what_they_lead_to), T(what_an_agent_leaves_out_or_breaks_is_borne))
