/* forms: prints the JSON Schema of every JSON body that a route of the native surface takes, from the server's own tables:
 *
 *   {"POST /v1/run": {"type": "object", ...}, ...}
 *
 * tests/static/spec_test compares them with spec/openapi.yaml. */
#include "server/form/form.h"
#include "server/serve/surface.h"

#include <stdio.h>
#include <string.h>

/* As in OpenAPI: "/v1/sandboxes/{id}". */
static void print_path(const char *path, FILE *out)
{
    while (*path) {
        size_t len = strcspn(path, "/");

        if (path[0] == ':')
            fprintf(out, "{%.*s}", (int) len - 1, path + 1);
        else
            fprintf(out, "%.*s", (int) len, path);
        path += len;
        if (*path)
            fputc(*path++, out);
    }
}

int main(void)
{
    json_t *all = json_object();

    for (size_t i = 0; i < route_count; i++) {
        char *name = NULL;
        size_t size = 0;
        FILE *out;

        if (!routes[i].form)
            continue;
        out = open_memstream(&name, &size);
        fprintf(out, "%s ", method_name(routes[i].method));
        print_path(routes[i].path, out);
        fclose(out);
        (void) json_object_set_new(all, name, form_schema(routes[i].form, FORM_WHOLE));
        free(name);
    }
    (void) json_dumpf(all, stdout, JSON_INDENT(1));
    json_decref(all);
    return 0;
}
