#include "surface/e2b/rpc.h"

#include "check.h"

#include <string.h>

static json_t *json(const char *text)
{
    return json_loads(text, 0, NULL);
}

static void fields_are_found_in_either_spelling(void)
{
    json_t *message = json("{\"watcherId\":\"a\",\"include_entry\":true,\"tag\":null}");
    const char *text = "";
    bool yes = false;
    struct err err;

    CHECK_INT(rpc_text(message, "watcherId", &text, &err), 0);
    CHECK_STR(text, "a");
    CHECK_INT(rpc_bool(message, "includeEntry", &yes, &err), 0);
    CHECK(yes);
    CHECK(rpc_field(message, "tag") == NULL);
    CHECK(rpc_field(message, "absent") == NULL);
    CHECK_INT(rpc_text(message, "includeEntry", &text, &err), -1);
    CHECK_INT(err.kind, ERR_INVALID);
    json_decref(message);
}

static void numbers_come_as_numbers_or_texts(void)
{
    json_t *message = json("{\"a\":5,\"b\":\"-7\",\"c\":3.0,\"d\":3.5,\"e\":\"x\",\"f\":\"\","
                           "\"g\":\"99999999999999999999\",\"h\":1e30,\"i\":[]}");
    static const char *const bad[] = { "d", "e", "f", "g", "h", "i" };
    int64_t n = 0;
    struct err err;

    CHECK(rpc_int(message, "a", 0, 9, &n, &err) == 0 && n == 5);
    CHECK(rpc_int(message, "b", -9, 9, &n, &err) == 0 && n == -7);
    CHECK(rpc_int(message, "c", 0, 9, &n, &err) == 0 && n == 3);
    CHECK_INT(rpc_int(message, "a", 0, 4, &n, &err), -1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_INT(rpc_int(message, bad[i], INT64_MIN, INT64_MAX, &n, &err), -1);
    CHECK_INT(n, 3);
    json_decref(message);
}

static void bytes_are_base64_of_either_alphabet(void)
{
    static const char *const rows[] = { "{\"d\":\"+/8=\"}", "{\"d\":\"-_8=\"}", "{\"d\":\"-_8\"}" };
    json_t *bad = json("{\"d\":\"*\",\"e\":7,\"f\":\"A\"}");
    uint8_t *bytes = NULL;
    size_t len = 0;
    struct err err;

    for (size_t i = 0; i < 3; i++) {
        json_t *message = json(rows[i]);

        CHECK_INT(rpc_bytes(message, "d", &bytes, &len, &err), 0);
        CHECK(len == 2 && memcmp(bytes, "\xfb\xff", 2) == 0);
        free(bytes);
        bytes = NULL;
        json_decref(message);
    }
    CHECK_INT(rpc_bytes(bad, "d", &bytes, &len, &err), -1);
    CHECK_INT(rpc_bytes(bad, "e", &bytes, &len, &err), -1);
    CHECK_INT(rpc_bytes(bad, "f", &bytes, &len, &err), -1);
    CHECK_INT(rpc_bytes(bad, "absent", &bytes, &len, &err), 0);
    CHECK(bytes == NULL);
    json_decref(bad);
}

static void enums_are_names_or_numbers(void)
{
    static const struct rpc_name rows[] = { { "SIGNAL_SIGTERM", 15 }, { "SIGNAL_SIGKILL", 9 } };
    json_t *message = json("{\"a\":\"SIGNAL_SIGKILL\",\"b\":15,\"c\":\"SIGHUP\",\"d\":1}");
    int n = 0;
    struct err err;

    CHECK(rpc_enum(message, "a", rows, 2, &n, &err) == 0 && n == 9);
    CHECK(rpc_enum(message, "b", rows, 2, &n, &err) == 0 && n == 15);
    CHECK_INT(rpc_enum(message, "c", rows, 2, &n, &err), -1);
    CHECK_INT(rpc_enum(message, "d", rows, 2, &n, &err), -1);
    json_decref(message);
}

static void every_kind_of_error_has_a_code(void)
{
    for (uint32_t kind = 1; kind < ERR_KIND_COUNT; kind++) {
        CHECK(strcmp(rpc_code_of(kind)->name, "unknown") != 0);
        CHECK(rpc_code_of(kind)->http_status >= 400);
    }
    CHECK_STR(rpc_code_of(ERR_NO_PROCESS)->name, "not_found");
    CHECK_STR(rpc_code_of(ERR_TIMEOUT)->name, "deadline_exceeded");
    CHECK_STR(rpc_code_of(ERR_KIND_COUNT)->name, "unknown");
}

CHECK_MAIN(T(fields_are_found_in_either_spelling), T(numbers_come_as_numbers_or_texts),
           T(bytes_are_base64_of_either_alphabet), T(enums_are_names_or_numbers),
           T(every_kind_of_error_has_a_code))
