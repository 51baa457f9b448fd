#include "surface/e2b/e2b.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

int e2b_notes_print(const struct e2b_notes *notes, char *out, size_t size, struct err *err)
{
    json_t *json = json_pack("{s:b, s:b, s:b, s:i, s:I, s:s}", "secure", notes->secure,
                             "public_traffic", notes->public_traffic, "auto_resume",
                             notes->auto_resume, "internet", notes->internet, "timeout",
                             (json_int_t) notes->timeout_s, "mask_host", notes->mask_host);
    size_t len = json_dumpb(json, out, size - 1, JSON_COMPACT);

    json_decref(json);
    if (len == 0 || len >= size)
        return err_set(err, ERR_INTERNAL, "no room for the sandbox's options");
    out[len] = '\0';
    return 0;
}

static bool flag(const json_t *json, const char *name, bool otherwise)
{
    const json_t *value = json_object_get(json, name);

    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

void e2b_notes_read(const char *text, struct e2b_notes *ret)
{
    json_t *json = text[0] ? json_loads(text, 0, NULL) : NULL;
    const json_t *internet = json_object_get(json, "internet");
    const char *mask = json_string_value(json_object_get(json, "mask_host"));

    *ret = E2B_NOTES;
    ret->secure = flag(json, "secure", true);
    ret->public_traffic = flag(json, "public_traffic", true);
    ret->auto_resume = flag(json, "auto_resume", false);
    if (json_is_integer(internet))
        ret->internet = (int) json_integer_value(internet);
    ret->timeout_s = (uint64_t) json_integer_value(json_object_get(json, "timeout"));
    (void) snprintf(ret->mask_host, sizeof ret->mask_host, "%s", mask ? mask : "");
    json_decref(json);
}
