/* POST /v1/run: a sandbox for one command, in one request. docs/api.md says what it takes and answers. */
#include "surface/v1/v1.h"

#include "base/base64.h"
#include "base/own.h"
#include "base/parse.h"
#include "server/guard/quota.h"
#include "server/net/network_rules.h"

#include <string.h>

#define AT(field)    offsetof(struct run_body, field)
#define OUTPUT_MOST  (16 * 1024 * 1024)
#define TIMEOUT_MOST 3600000
#define FILES_MOST   256
#define CODE_MOST    120000 /* it is one argument of a program: the kernel takes 128 KiB */

struct run_body {
    const char *template, *command, *code, *language, *cwd, *user, *stream, *input;
    json_t *args, *env, *limits, *network, *files, *wanted, *input_json;
    uint64_t timeout_ms, cpu_timeout_ms, output_limit, files_limit;
    bool root;
};

/* Names in the order of `languages`. */
static const char *const language_names[] = { "python", "javascript", "bash", "sh", NULL };
static json_t *files_schema(void);

/* clang-format off */
static const struct form_field fields[] = {
    { "template", FORM_TEXT, .at = AT(template), .help = "NAME or NAME:TAG" },
    { "limits", FORM_OBJECT, .at = AT(limits), .help = V1_LIMITS_HELP "; of disk, half of memory where it is in memory", .describe = v1_limits_schema },
    { "network", FORM_OBJECT, .at = AT(network), .help = "what it may reach; docs/network.md", .items = &network_form },
    { "root", FORM_BOOL, .at = AT(root), .help = "whether root inside may be used", .fallback = "false" },
    { "files", FORM_OBJECT, .at = AT(files),
      .help = "by path, absolute or relative to the user's home; missing directories are made", .describe = files_schema },
    { "command", FORM_TEXT, .at = AT(command), .help = "run by the user's login shell" },
    { "args", FORM_ARRAY, .at = AT(args), .least = 1, .help = "a program and its arguments" },
    { "code", FORM_TEXT, .at = AT(code), .most = CODE_MOST, .help = "a program in the language" },
    { "language", FORM_TEXT, .at = AT(language), .help = "of code", .choices = language_names, .schema = "{\"default\": \"python\"}" },
    { "stdin", FORM_STRING, .at = AT(input_json), .help = "all of its input; then it ends" },
    { "env", FORM_OBJECT, .at = AT(env), .help = "variables of this command" },
    { "cwd", FORM_TEXT, .at = AT(cwd), .help = "its directory; default: the template's, or the user's home" },
    { "user", FORM_TEXT, .at = AT(user), .help = "whose rights it has; default: the template's user" },
    { "timeout", FORM_SECONDS, .at = AT(timeout_ms), 1, TIMEOUT_MOST, "seconds until it is ended", .fallback = "60" },
    { "cpu_timeout", FORM_SECONDS, .at = AT(cpu_timeout_ms), 1, TIMEOUT_MOST,
      "seconds of processor time, of all its processes together" },
    { "output_limit", FORM_COUNT, .at = AT(output_limit), 0, OUTPUT_MOST, "bytes of each stream", .fallback = "1048576" },
    { "return_files", FORM_ARRAY, .at = AT(wanted), 0, FILES_MOST, "paths of files to answer with" },
    { "files_limit", FORM_COUNT, .at = AT(files_limit), 0, OUTPUT_MOST, "bytes of all returned files together",
      .fallback = "1048576" },
    { "stream", FORM_TEXT, .at = AT(stream), .help = "answer with events, in this form", .choices = v1_stream_names },
};
/* clang-format on */
const struct form v1_run_form = FORM_OF(fields, .help = "one of command, args and code");

static const struct {
    const char *language, *program, *option;
} languages[] = {
    { "python", "python3", "-c" },
    { "javascript", "node", "-e" },
    { "bash", "bash", "-c" },
    { "sh", "sh", "-c" },
};

/* One request, from the body to the end of the handler. */
struct order {
    json_t *json; /* owns the texts */
    struct run_body body;
    const char **args, **env, **wanted;
    size_t wanted_count;
    const char *code_args[3];
    struct ops_once_file *files;
    void **decoded; /* of files in base64, as many as there are files */
    struct reach *network;
    struct ops_once once;
    struct ops_command command;
    char sandbox[ID_LEN + 1];
};

static void order_done(struct order *o)
{
    for (size_t i = 0; o->decoded && i < o->once.file_count; i++)
        free(o->decoded[i]);
    free(o->decoded);
    free(o->files);
    free(o->args);
    free(o->env);
    free(o->wanted);
    free(o->network);
    json_decref(o->json);
}

/* ---- what is to run ---- */

static void read_code(struct order *o)
{
    const char *language = o->body.language ? o->body.language : "python";
    size_t i = 0; /* language_names has the same */

    while (strcmp(languages[i].language, language) != 0)
        i++;
    o->code_args[0] = languages[i].program;
    o->code_args[1] = languages[i].option;
    o->code_args[2] = o->body.code;
    o->command.args = o->code_args;
    o->command.arg_count = ARRAY_LEN(o->code_args);
}

static int read_command(struct exchange *x, struct order *o, struct err *err)
{
    const struct run_body *body = &o->body;

    if (!!body->command + !!body->args + !!body->code != 1)
        return form_bad(exchange_caller(x), err, "command",
                        "one of command, args and code is needed");
    if (body->language && !body->code)
        return form_bad(exchange_caller(x), err, "language", "only of code");
    o->command = (struct ops_command){ .command = body->command,
                                       .cwd = body->cwd,
                                       .user = body->user,
                                       .timeout_ms = body->timeout_ms,
                                       .cpu_timeout_ms = body->cpu_timeout_ms,
                                       .measure = true,
                                       .flags = AGENT_KILL_ON_CLOSE,
                                       .input = json_string_value(body->input_json),
                                       .input_len = json_string_length(body->input_json) };
    if (body->code) {
        read_code(o);
        return 0;
    }
    if (form_texts(exchange_caller(x), "args", body->args, &o->args, &o->command.arg_count, err) <
        0)
        return -1;
    o->command.args = body->args ? o->args : NULL;
    return 0;
}

/* ---- files for it ---- */

struct file_body {
    const char *encoding, *mode;
    json_t *data;
};
#define FILE_AT(field) offsetof(struct file_body, field)
static const char *const encodings[] = { "utf-8", "base64", NULL };
/* clang-format off */
static const struct form_field file_fields[] = {
    { "data", FORM_STRING, .at = FILE_AT(data), .help = "what is in it", .needed = true },
    { "encoding", FORM_TEXT, .at = FILE_AT(encoding), .help = "of data", .choices = encodings, .fallback = "utf-8" },
    { "mode", FORM_TEXT, .at = FILE_AT(mode), .help = "octal permission bits, such as \"755\"" },
};
/* clang-format on */
static const struct form file_form = FORM_OF(file_fields);

/* A text, or a file_form. */
static json_t *files_schema(void)
{
    return json_pack("{s:s, s:i, s:{s:[{s:s}, o]}}", "type", "object", "maxProperties", FILES_MOST,
                     "additionalProperties", "oneOf", "type", "string",
                     form_schema(&file_form, FORM_WHOLE));
}

static int decode(struct exchange *x, struct ops_once_file *file, void **ret_decoded,
                  struct err *err)
{
    uint8_t *bytes = malloc(file->len / 4 * 3 + 1);
    ssize_t n = bytes ? base64_get(file->data, file->len, bytes) : -1;

    *ret_decoded = bytes;
    if (!bytes)
        return err_set(err, ERR_NO_MEMORY, "no memory for a file");
    if (n < 0)
        return form_bad(exchange_caller(x), err, "files", "'%.80s' is not base64", file->path);
    file->data = bytes;
    file->len = (size_t) n;
    return 0;
}

/* A text, or {data, encoding, mode}. */
static int read_file(struct exchange *x, const char *path, json_t *value, struct ops_once_file *ret,
                     void **ret_decoded, struct err *err)
{
    struct file_body body = { .data = value };

    *ret = (struct ops_once_file){ .path = path, .mode = UINT32_MAX };
    if (!path[0] || strlen(path) >= AGENT_PATH_MAX)
        return form_bad(exchange_caller(x), err, "files", "a path is empty or too long");
    if (json_is_object(value)) {
        body.data = NULL;
        if (form_read(exchange_caller(x), value, &file_form, &body, err) < 0) {
            (void) err_wrap(err, "files: '%.80s'", path);
            return exchange_blame(x, "files", NULL, NULL);
        }
    }
    if (!json_is_string(body.data))
        return form_bad(exchange_caller(x), err, "files",
                        "'%.80s' must be a string, or {data, encoding, mode}", path);
    if (body.mode && parse_mode(body.mode, &ret->mode, err) < 0)
        return form_bad(exchange_caller(x), err, "files",
                        "'%.80s': mode: must be octal permission bits", path);
    ret->data = json_string_value(body.data);
    ret->len = json_string_length(body.data);
    return body.encoding && strcmp(body.encoding, "base64") == 0 ? decode(x, ret, ret_decoded, err)
                                                                 : 0;
}

static int read_files(struct exchange *x, struct order *o, struct err *err)
{
    size_t count = json_object_size(o->body.files);
    const char *path;
    json_t *value;

    if (count > FILES_MOST)
        return form_bad(exchange_caller(x), err, "files", "%d at most", FILES_MOST);
    o->files = calloc(count + 1, sizeof *o->files);
    o->decoded = calloc(count + 1, sizeof *o->decoded);
    if (!o->files || !o->decoded)
        return err_set(err, ERR_NO_MEMORY, "no memory for files");
    json_object_foreach(o->body.files, path, value)
    {
        size_t i = o->once.file_count++;

        if (read_file(x, path, value, &o->files[i], &o->decoded[i], err) < 0)
            return -1;
    }
    o->once.files = o->files;
    return 0;
}

/* ---- the sandbox ---- */

static int read_sandbox(struct exchange *x, struct order *o, struct err *err)
{
    struct ops_create *create = &o->once.create;

    *create = (struct ops_create){ .template = o->body.template, .root = o->body.root };
    limits_default(&create->limits);
    if (v1_limits_read(x, o->body.limits, &create->limits, err) < 0)
        return -1;
    create->any_disk = !json_object_get(o->body.limits, "disk");
    if (form_assignments(exchange_caller(x), "env", o->body.env, &o->env, &create->env_count, err) <
        0)
        return -1;
    create->env = o->env;
    o->once.user = o->body.user;
    o->once.timeout_ms = o->body.timeout_ms;
    if (!o->body.network)
        return 0;
    o->network = malloc(sizeof *o->network);
    if (!o->network)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    create->network = o->network;
    return network_read(exchange_caller(x), "network", o->body.network, o->network, err);
}

static int order_read(struct exchange *x, struct order *o, struct err *err)
{
    *o = (struct order){ .json = NULL };
    if (exchange_json(x, &o->json, err) < 0)
        return -1;
    if (form_read(exchange_caller(x), o->json, &v1_run_form, &o->body, err) < 0 ||
        read_command(x, o, err) < 0 || read_files(x, o, err) < 0 || read_sandbox(x, o, err) < 0 ||
        form_texts(exchange_caller(x), "return_files", o->body.wanted, &o->wanted, &o->wanted_count,
                   err) < 0)
        return -1;
    return 0;
}

/* ---- the answer ---- */

/* As much as fits in `left`, which is then less. */
static int fetch(struct ops *ops, const struct ops_file *file, uint64_t *left, json_t *json,
                 struct err *err)
{
    auto_free char *data = NULL;
    struct file_info info;
    struct stream stream;
    const void *piece;
    size_t len = 0;
    uint32_t n;
    int r;

    if (ops_file_read(ops, file, 0, *left + 1, &stream, &info, err) < 0)
        return -1;
    data = malloc((size_t) (info.size < *left ? info.size : *left) + 1);
    r = data ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a file");
    while (r == 0 && (r = files_read_next(&stream, &piece, &n, err)) == 1) {
        size_t room = (size_t) (info.size < *left ? info.size : *left) - len;
        size_t take = n < room ? n : room;

        memcpy(data + len, piece, take);
        len += take;
        r = 0;
        if (take < n)
            break;
    }
    stream_close(&stream);
    if (r < 0)
        return -1;
    *left -= len;
    (void) json_object_set_new(json, "size", json_integer((json_int_t) info.size));
    (void) json_object_set_new(json, "truncated", json_boolean(len < info.size));
    return v1_put_bytes(json, "data", data, len) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for a file")
               : 0;
}

/* A file that is not there is told in its place: the others are there. */
static void add_files(struct ops *ops, const struct order *o, json_t *answer)
{
    json_t *list = json_array();
    uint64_t left = o->body.files_limit;

    for (size_t i = 0; i < o->wanted_count; i++) {
        struct ops_file file = { .sandbox = o->sandbox,
                                 .user = o->body.user,
                                 .path = o->wanted[i] };
        json_t *json = json_pack("{s:s}", "path", o->wanted[i]);
        struct err err;

        if (fetch(ops, &file, &left, json, &err) < 0)
            (void) json_object_set_new(json, "error",
                                       json_pack("{s:s, s:o}", "code",
                                                 err_kind_info(err.kind)->name, "message",
                                                 form_text(err.msg, strlen(err.msg))));
        (void) json_array_append_new(list, json);
    }
    (void) json_object_set_new(answer, "files", list);
}

static json_t *result_json(struct ops *ops, const struct order *o, const struct exec_result *result)
{
    json_t *json = v1_result_json(result);

    (void) json_object_set_new(json, "sandbox", json_string(o->sandbox));
    (void) json_object_set_new(json, "memory_peak_bytes",
                               json_integer((json_int_t) result->sandbox_peak_bytes));
    add_files(ops, o, json);
    return json;
}

static int run_and_wait(struct exchange *x, struct ops *ops, struct order *o, struct err *err)
{
    struct ops_output out;
    json_t *json;
    int r;

    if (ops_run_collect(ops, o->sandbox, &o->command, (size_t) o->body.output_limit, &out, err) < 0)
        return -1;
    json = result_json(ops, o, &out.result);
    (void) json_object_set_new(json, "stdout_truncated", json_boolean(out.truncated[0]));
    (void) json_object_set_new(json, "stderr_truncated", json_boolean(out.truncated[1]));
    r = v1_put_bytes(json, "stdout", out.data[0], out.len[0]) < 0 ||
                v1_put_bytes(json, "stderr", out.data[1], out.len[1]) < 0
            ? err_set(err, ERR_NO_MEMORY, "no memory for the answer")
            : 0;
    ops_output_done(&out);
    if (r == 0)
        return exchange_reply_json(x, 200, json, err);
    json_decref(json);
    return -1;
}

static int follow(struct exchange *x, struct ops *ops, struct order *o, struct ops_run *run,
                  bool sse, struct err *err)
{
    struct exec_result result;
    struct v1_stream stream;
    json_t *start = json_pack("{s:s, s:s, s:I}", "type", "start", "sandbox", o->sandbox, "pid",
                              (json_int_t) run->exec.pid);
    int r;

    if (v1_stream_begin(&stream, x, sse, err) < 0) {
        json_decref(start);
        return -1;
    }
    if (v1_stream_event(&stream, start, err) < 0)
        return -1;
    r = v1_stream_output(&stream, ops, run, &result, err);
    return r == 1 ? v1_stream_end(&stream, result_json(ops, o, &result), err) : r;
}

static int run_and_stream(struct exchange *x, struct ops *ops, struct order *o, bool sse,
                          struct err *err)
{
    struct ops_run run;
    int r;

    if (quota_stream_begin(exchange_caller(x), err) < 0)
        return -1;
    r = ops_run_start(ops, o->sandbox, &o->command, &run, err);
    if (r == 0) {
        r = follow(x, ops, o, &run, sse, err);
        ops_run_close(&run);
    }
    quota_stream_end(exchange_caller(x));
    return r;
}

static int serve(struct exchange *x, struct order *o, enum v1_wish wish, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    uint64_t output = wish == V1_PLAIN ? 2 * o->body.output_limit : 0;
    int r;

    if (exchange_take_room(x, output + o->body.files_limit, err) < 0 ||
        ops_once_begin(&ops, &o->once, o->sandbox, err) < 0)
        return -1;
    r = wish == V1_PLAIN ? run_and_wait(x, &ops, o, err)
                         : run_and_stream(x, &ops, o, wish == V1_SSE, err);
    ops_once_end(&ops, o->sandbox);
    return r;
}

int v1_run(struct exchange *x, struct err *err)
{
    struct order o;
    int r = order_read(x, &o, err);

    if (r == 0)
        r = serve(x, &o, v1_read_wish(x, o.body.stream), err);
    order_done(&o);
    return r;
}
