#define PCRE2_CODE_UNIT_WIDTH 8

#include "policy/match.h"

#include <pcre2.h>
#include <stdint.h>
#include <string.h>

/* PCRE2 counts its limit again at every place of the text where it tries to start, so the limit
 * shrinks as the text grows: the product stays about the same. */
#define WORK_MAX        20000000u
#define MATCH_LIMIT_MIN 200
#define HEAP_KIB_MAX    2048

void *match_compile(const char *pattern, struct err *err)
{
    PCRE2_SIZE at;
    int code;
    pcre2_code *regex = pcre2_compile((PCRE2_SPTR) pattern, strlen(pattern),
                                      PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C,
                                      &code, &at, NULL);
    char why[128];

    if (regex)
        return regex;
    if (pcre2_get_error_message(code, (PCRE2_UCHAR *) why, sizeof why) < 0)
        (void) strcpy(why, "unknown error");
    (void) err_set(err, ERR_INVALID, "regex '%.80s': %s at byte %zu", pattern, why, (size_t) at);
    return NULL;
}

void match_free(void *regex)
{
    pcre2_code_free(regex);
}

static enum match run(const pcre2_code *regex, const char *text, size_t len, uint32_t options)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    enum match result = MATCH_FAILED;
    size_t limit = WORK_MAX / (len + 1);

    if (limit > MATCH_LIMIT_MAX)
        limit = MATCH_LIMIT_MAX;
    if (limit < MATCH_LIMIT_MIN)
        limit = MATCH_LIMIT_MIN;
    if (data && context) {
        int rc;

        (void) pcre2_set_match_limit(context, (uint32_t) limit);
        (void) pcre2_set_depth_limit(context, (uint32_t) limit);
        (void) pcre2_set_heap_limit(context, HEAP_KIB_MAX);
        rc = pcre2_match(regex, (PCRE2_SPTR) text, len, 0, options, data, context);
        if (rc >= 0)
            result = MATCH_YES;
        else if (rc == PCRE2_ERROR_NOMATCH)
            result = MATCH_NO;
    }
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
    return result;
}

enum match match_search(const void *regex, const char *text, size_t len)
{
    return run(regex, text, len, 0);
}

enum match match_whole(const void *regex, const char *text, size_t len)
{
    return run(regex, text, len, PCRE2_ANCHORED | PCRE2_ENDANCHORED);
}
