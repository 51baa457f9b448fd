#include "server/form/tools_args.h"

#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int args_bad(struct caller *caller, const char *within, const char *field, const char *why,
             struct err *err)
{
    char name[64];

    (void) snprintf(name, sizeof name, "%s%s", within, field);
    (void) caller_blame(caller, name, NULL, NULL);
    return err_set(err, ERR_INVALID, "%s %s", name, why);
}

/* "content, files_with_matches or count" */
static const char *list_choices(const char *const *choices, char *out, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; choices[i] && len < size; i++)
        len += (size_t) snprintf(out + len, size - len, "%s%s",
                                 i == 0           ? "must be "
                                 : choices[i + 1] ? ", "
                                                  : " or ",
                                 choices[i]);
    return out;
}

static bool is_choice(const char *const *choices, const char *text)
{
    while (*choices && strcmp(*choices, text) != 0)
        choices++;
    return *choices != NULL;
}

static int take_text(struct caller *caller, const char *within, const struct arg *arg,
                     json_t *value, void *out, struct err *err)
{
    char why[160];

    if (!json_is_string(value))
        return args_bad(caller, within, arg->name, "is not a text", err);
    if (arg->most > 0 && json_string_length(value) > arg->most) {
        (void) snprintf(why, sizeof why, "is longer than %" PRIu64 " bytes", arg->most);
        return args_bad(caller, within, arg->name, why, err);
    }
    if (arg->choices && !is_choice(arg->choices, json_string_value(value)))
        return args_bad(caller, within, arg->name, list_choices(arg->choices, why, sizeof why),
                        err);
    *(const char **) out = json_string_value(value);
    return 0;
}

static int take_number(struct caller *caller, const char *within, const struct arg *arg,
                       json_t *value, void *out, struct err *err)
{
    json_int_t number = json_integer_value(value);
    char why[80];

    if (json_is_real(value) && json_real_value(value) >= 0 && json_real_value(value) < 1e15 &&
        json_real_value(value) == (double) (json_int_t) json_real_value(value))
        number = (json_int_t) json_real_value(value); /* 60.0: some languages have no integers */
    else if (!json_is_integer(value))
        return args_bad(caller, within, arg->name, "is not a whole number", err);
    if (number < 0 || (uint64_t) number < arg->least || (uint64_t) number > arg->most) {
        (void) snprintf(why, sizeof why, "is not between %" PRIu64 " and %" PRIu64, arg->least,
                        arg->most);
        return args_bad(caller, within, arg->name, why, err);
    }
    *(uint64_t *) out = (uint64_t) number;
    return 0;
}

static int take_id(struct caller *caller, const char *within, const struct arg *arg, json_t *value,
                   void *out, struct err *err)
{
    json_t *number;
    uint64_t id;
    int r;

    if (!json_is_string(value))
        return take_number(caller, within, arg, value, out, err);
    if (parse_u64(json_string_value(value), &id, err) < 0 || id > INT64_MAX)
        return args_bad(caller, within, arg->name, "is not a whole number", err);
    number = json_integer((json_int_t) id);
    r = take_number(caller, within, arg, number, out, err);
    json_decref(number);
    return r;
}

static int take_real(struct caller *caller, const char *within, const struct arg *arg,
                     json_t *value, void *out, struct err *err)
{
    char why[80];

    if (!json_is_number(value))
        return args_bad(caller, within, arg->name, "is not a number", err);
    if (!(json_number_value(value) >= (double) arg->least &&
          json_number_value(value) <= (double) arg->most)) {
        (void) snprintf(why, sizeof why, "is not between %" PRIu64 " and %" PRIu64, arg->least,
                        arg->most);
        return args_bad(caller, within, arg->name, why, err);
    }
    *(double *) out = json_number_value(value);
    return 0;
}

static int take(struct caller *caller, const char *within, const struct arg *arg, json_t *value,
                void *out, struct err *err)
{
    switch (arg->type) {
    case ARG_TEXT:
        return take_text(caller, within, arg, value, out, err);
    case ARG_NUMBER:
        return take_number(caller, within, arg, value, out, err);
    case ARG_REAL:
        return take_real(caller, within, arg, value, out, err);
    case ARG_ID:
        return take_id(caller, within, arg, value, out, err);
    case ARG_BOOL:
        if (!json_is_boolean(value))
            return args_bad(caller, within, arg->name, "is neither true nor false", err);
        *(bool *) out = json_is_true(value);
        return 0;
    case ARG_OBJECT:
        if (!json_is_object(value))
            return args_bad(caller, within, arg->name, "is not an object", err);
        *(json_t **) out = value;
        return 0;
    case ARG_ARRAY:
        if (!json_is_array(value))
            return args_bad(caller, within, arg->name, "is not an array", err);
        *(json_t **) out = value;
        return 0;
    case ARG_IGNORED:
        return 0;
    }
    return err_set(err, ERR_INTERNAL, "an argument without a type");
}

static bool is_given(const struct arg *arg, const char *out)
{
    if (arg->type == ARG_ID || arg->type == ARG_NUMBER)
        return *(const uint64_t *) (const void *) (out + arg->at) != 0;
    return *(void *const *) (const void *) (out + arg->at) != NULL;
}

int args_read(struct caller *caller, json_t *object, const char *within, const struct args *args,
              void *out, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        const struct arg *arg = NULL;

        for (size_t i = 0; i < args->count && !arg; i++)
            if (strcmp(args->rows[i].name, key) == 0)
                arg = &args->rows[i];
        if (!arg)
            return args_bad(caller, within, key, "is unknown", err);
        if (!json_is_null(value) &&
            take(caller, within, arg, value, (char *) out + arg->at, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < args->count; i++)
        if (args->rows[i].needed && !is_given(&args->rows[i], out))
            return args_bad(caller, within, args->rows[i].name, "is missing", err);
    return 0;
}
