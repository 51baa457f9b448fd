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

int args_need(struct caller *caller, const char *text, const char *field, struct err *err)
{
    return text ? 0 : args_bad(caller, "", field, "is missing", err);
}

static int take_text(struct caller *caller, const char *within, const struct arg *arg, json_t *value,
                     struct err *err)
{
    char why[64];

    if (!json_is_string(value))
        return args_bad(caller, within, arg->name, "is not a text", err);
    if (arg->most > 0 && json_string_length(value) > arg->most) {
        (void) snprintf(why, sizeof why, "is longer than %" PRIu64 " bytes", arg->most);
        return args_bad(caller, within, arg->name, why, err);
    }
    *(const char **) arg->out = json_string_value(value);
    return 0;
}

static int take_number(struct caller *caller, const char *within, const struct arg *arg, json_t *value,
                       struct err *err)
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
    *(uint64_t *) arg->out = (uint64_t) number;
    return 0;
}

static int take_id(struct caller *caller, const char *within, const struct arg *arg, json_t *value,
                   struct err *err)
{
    json_t *number;
    uint64_t id;
    int r;

    if (!json_is_string(value))
        return take_number(caller, within, arg, value, err);
    if (parse_u64(json_string_value(value), &id, err) < 0 || id > INT64_MAX)
        return args_bad(caller, within, arg->name, "is not a whole number", err);
    number = json_integer((json_int_t) id);
    r = take_number(caller, within, arg, number, err);
    json_decref(number);
    return r;
}

static int take_real(struct caller *caller, const char *within, const struct arg *arg, json_t *value,
                     struct err *err)
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
    *(double *) arg->out = json_number_value(value);
    return 0;
}

static int take(struct caller *caller, const char *within, const struct arg *arg, json_t *value,
                struct err *err)
{
    switch (arg->type) {
    case ARG_TEXT:
        return take_text(caller, within, arg, value, err);
    case ARG_NUMBER:
        return take_number(caller, within, arg, value, err);
    case ARG_REAL:
        return take_real(caller, within, arg, value, err);
    case ARG_ID:
        return take_id(caller, within, arg, value, err);
    case ARG_BOOL:
        if (!json_is_boolean(value))
            return args_bad(caller, within, arg->name, "is neither true nor false", err);
        *(bool *) arg->out = json_is_true(value);
        return 0;
    case ARG_OBJECT:
        if (!json_is_object(value))
            return args_bad(caller, within, arg->name, "is not an object", err);
        *(json_t **) arg->out = value;
        return 0;
    case ARG_ARRAY:
        if (!json_is_array(value))
            return args_bad(caller, within, arg->name, "is not an array", err);
        *(json_t **) arg->out = value;
        return 0;
    }
    return err_set(err, ERR_INTERNAL, "an argument without a type");
}

int args_read(struct caller *caller, json_t *object, const char *within, const struct arg *args,
              size_t count, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        const struct arg *arg = NULL;

        for (size_t i = 0; i < count && !arg; i++)
            if (strcmp(args[i].name, key) == 0)
                arg = &args[i];
        if (!arg)
            return args_bad(caller, within, key, "is unknown", err);
        if (!json_is_null(value) && take(caller, within, arg, value, err) < 0)
            return -1;
    }
    return 0;
}
