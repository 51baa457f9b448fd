#include "cli/template/template_image.h"

#include "base/json.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/api/image.h"
#include "cli/api/server.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/template/template_maker.h"
#include "cli/users.h"
#include "template/image_import.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define IMPORT_USER "cove-import"

static void json_imported(const char *name, const struct image_result *result)
{
    struct json_out json;

    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_text(&json, "name", name);
    json_out_bool(&json, "was_there", result->was_there);
    json_out_number(&json, "bytes", result->bytes);
    json_out_number(&json, "files", result->files);
    json_out_number(&json, "wall_ms", result->wall_ms);
    json_out_end(&json);
    (void) json_out_finish(&json);
}

static void say_imported(const char *name, const struct image_result *result)
{
    char size[32], span[32];

    (void) printf("%s is ready: %s in %llu files, %s in %s\n", name,
                  report_size(size, sizeof size, result->bytes), (unsigned long long) result->files,
                  result->was_there ? "which were here already," : "imported",
                  report_span(span, sizeof span, result->wall_ms));
}

int template_image_make(struct image_spec *spec, struct maker *maker, bool as_json, struct err *err)
{
    struct image_result result = { 0 };
    char program[PATH_MAX];
    int r;

    if (program_find("cove-import", program, sizeof program, err) < 0 ||
        user_ensure(IMPORT_USER, &spec->uid, &spec->gid, err) < 0)
        return -1;
    spec->program = program;
    maker_init(maker, spec->name);
    maker->how = spec->open_blob ? "pull" : "import";
    maker->from = spec->from;
    r = template_import(&maker->way, report_state(), spec, &result, err);
    maker_done(maker);
    if (r < 0)
        return -1;
    (as_json ? json_imported : say_imported)(spec->name, &result);
    return maker_recorded(maker, err);
}

bool template_image_is_servers(const struct image_values *values)
{
    return values->tenant || server_is_elsewhere() || geteuid() != 0;
}

int template_image_import(const char *path, const struct image_values *values, bool as_json)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct image_spec spec = {
        .archive_fd = -1, .layout_fd = -1, .tag = values->tag, .squash_ids = values->squash_ids
    };
    const char *slash = strrchr(path, '/');
    char name[NAME_MAX + 1];
    struct maker maker;
    struct stat st;
    struct err err = { 0 };

    if (template_image_is_servers(values)) {
        const struct image_wish wish = { .name = values->name,
                                         .tenant = values->tenant,
                                         .file = path,
                                         .tag = values->tag,
                                         .as_json = as_json };

        return image_by_server(&wish);
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        err_sys(&err, errno, "%s", path);
    else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        err_set(&err, ERR_INVALID, "%s is neither a file nor a directory", path);
    if (err.kind != ERR_NONE)
        return report_error(&err);
    image_name_of_file(path, name, sizeof name);
    spec.name = values->name ? values->name : name;
    spec.from = slash && slash[1] ? slash + 1 : path;
    *(S_ISDIR(st.st_mode) ? &spec.layout_fd : &spec.archive_fd) = fd;
    if (!name_ok(spec.name))
        err_set(&err, ERR_INVALID, "'%.60s' cannot be a template's name: --name gives another",
                spec.name);
    else if (template_image_make(&spec, &maker, as_json, &err) == 0)
        return report_end(0);
    return report_error(&err);
}
