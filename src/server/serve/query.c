#include "server/serve/query.h"

#include "base/parse.h"
#include "server/form/form.h"

#include <inttypes.h>
#include <string.h>

int query_count(struct exchange *x, const char *name, uint64_t least, uint64_t most, uint64_t *ret,
                struct err *err)
{
    const char *text = exchange_query(x, name);
    uint64_t value;

    if (!text)
        return 0;
    if (parse_u64(text, &value, err) < 0)
        return form_bad(exchange_caller(x), err, name, "a whole number is needed");
    if (value < least || value > most)
        return form_bad(exchange_caller(x), err, name,
                        "%" PRIu64 " is not between %" PRIu64 " and %" PRIu64, value, least, most);
    *ret = value;
    return 0;
}

int query_bool(struct exchange *x, const char *name, bool *ret, struct err *err)
{
    const char *text = exchange_query(x, name);
    bool yes = text && (strcmp(text, "true") == 0 || strcmp(text, "1") == 0);

    if (!text)
        return 0;
    if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return form_bad(exchange_caller(x), err, name, "true or false is needed");
    *ret = yes;
    return 0;
}

int query_mode(struct exchange *x, const char *name, uint32_t *ret, struct err *err)
{
    const char *text = exchange_query(x, name);

    if (!text)
        return 0;
    if (parse_mode(text, ret, err) < 0)
        return form_bad(exchange_caller(x), err, name,
                        "octal permission bits are needed, such as 644");
    return 0;
}
