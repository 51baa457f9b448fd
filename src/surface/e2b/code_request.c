/* The body of POST /execute. The Python SDK sends null for what is not there. */
#include "surface/e2b/code.h"

#include <string.h>

static int read_env(json_t *env, struct err *err)
{
    const char *name;
    json_t *value;

    if (env && !json_is_object(env))
        return err_set(err, ERR_INVALID, "env_vars: an object is needed");
    json_object_foreach(env, name, value)
    {
        if (!json_is_string(value))
            return err_set(err, ERR_INVALID, "env_vars: '%.40s' is not a text", name);
        if (!name[0] || strchr(name, '='))
            return err_set(err, ERR_INVALID, "env_vars: '%.40s' is not a name", name);
    }
    return 0;
}

static json_t *member(json_t *body, const char *name)
{
    json_t *value = json_object_get(body, name);

    return json_is_null(value) ? NULL : value;
}

int code_request_read(struct code_request *request, struct err *err)
{
    json_t *code = member(request->body, "code"), *id = member(request->body, "context_id");
    json_t *language = member(request->body, "language");

    request->env = member(request->body, "env_vars");
    request->code = json_string_value(code);
    request->context_id = json_string_value(id);
    if (!request->code)
        return err_set(err, ERR_INVALID, "code: a text is needed");
    if ((id && !request->context_id) || (language && !json_is_string(language)))
        return err_set(err, ERR_INVALID, "%s: a text is needed",
                       language && !json_is_string(language) ? "language" : "context_id");
    if (id && language)
        return err_set(err, ERR_INVALID, "Only one of context_id or language can be provided");
    request->language = code_language_find(language ? json_string_value(language) : "python");
    if (!request->language)
        return err_set(err, ERR_INVALID, "language: '%.40s' is not supported",
                       json_string_value(language));
    if (id)
        request->language = NULL;
    return read_env(request->env, err);
}
