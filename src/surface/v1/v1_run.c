/* POST /v1/run: a sandbox for one command, in one request. docs/api.md says what it takes and answers. */
#include "surface/v1/v1.h"

#include "base/base64.h"
#include "base/own.h"
#include "base/parse.h"
#include "server/guard/quota.h"
#include "server/net/network_rules.h"

#include <string.h>

#define AT(field)       offsetof(struct run_body, field)
#define OUTPUT_DEFAULT  (1024 * 1024)
#define OUTPUT_MOST     (16 * 1024 * 1024)
#define TIMEOUT_DEFAULT 60000
#define TIMEOUT_MOST    3600000
#define FILES_MOST      256
#define CODE_MOST       120000 /* it is one argument of a program: the kernel takes 128 KiB */

struct run_body {
    const char *template, *command, *code, *language, *cwd, *user, *stream, *input;
    json_t *args, *env, *limits, *network, *files, *wanted, *input_json;
    uint64_t timeout_ms, cpu_timeout_ms, output_limit, files_limit;
    bool root;
};

static const struct form_field fields[] = {
    { "template", FORM_TEXT, AT(template), 0, 0 },
    { "limits", FORM_OBJECT, AT(limits), 0, 0 },
    { "network", FORM_OBJECT, AT(network), 0, 0 },
    { "root", FORM_BOOL, AT(root), 0, 0 },
    { "files", FORM_OBJECT, AT(files), 0, 0 },
    { "command", FORM_TEXT, AT(command), 0, 0 },
    { "args", FORM_ARRAY, AT(args), 0, 0 },
    { "code", FORM_TEXT, AT(code), 0, 0 },
    { "language", FORM_TEXT, AT(language), 0, 0 },
    { "stdin", FORM_ANY, AT(input_json), 0, 0 },
    { "env", FORM_OBJECT, AT(env), 0, 0 },
    { "cwd", FORM_TEXT, AT(cwd), 0, 0 },
    { "user", FORM_TEXT, AT(user), 0, 0 },
    { "timeout", FORM_SECONDS, AT(timeout_ms), 1, TIMEOUT_MOST },
    { "cpu_timeout", FORM_SECONDS, AT(cpu_timeout_ms), 1, TIMEOUT_MOST },
    { "output_limit", FORM_COUNT, AT(output_limit), 0, OUTPUT_MOST },
    { "return_files", FORM_ARRAY, AT(wanted), 0, 0 },
    { "files_limit", FORM_COUNT, AT(files_limit), 0, OUTPUT_MOST },
    { "stream", FORM_TEXT, AT(stream), 0, 0 },
};

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

static int read_code(struct exchange *x, struct order *o, struct err *err)
{
    const char *language = o->body.language ? o->body.language : "python";

    if (strlen(o->body.code) > CODE_MOST)
        return form_bad(exchange_caller(x), err, "code", "more than %d bytes: put it into a file",
                        CODE_MOST);
    for (size_t i = 0; i < ARRAY_LEN(languages); i++)
        if (strcmp(languages[i].language, language) == 0) {
            o->code_args[0] = languages[i].program;
            o->code_args[1] = languages[i].option;
            o->code_args[2] = o->body.code;
            o->command.args = o->code_args;
            o->command.arg_count = ARRAY_LEN(o->code_args);
            return 0;
        }
    return form_bad(exchange_caller(x), err, "language",
                    "'python', 'javascript', 'bash' or 'sh' is needed");
}

static int read_command(struct exchange *x, struct order *o, struct err *err)
{
    const struct run_body *body = &o->body;

    if (!!body->command + !!body->args + !!body->code != 1)
        return form_bad(exchange_caller(x), err, "command",
                        "one of command, args and code is needed");
    if (body->language && !body->code)
        return form_bad(exchange_caller(x), err, "language", "only of code");
    if (body->args && json_array_size(body->args) == 0)
        return form_bad(exchange_caller(x), err, "args", "at least one is needed");
    if (body->input_json && !json_is_string(body->input_json))
        return form_bad(exchange_caller(x), err, "stdin", "a text is needed");
    o->command = (struct ops_command){ .command = body->command,
                                       .cwd = body->cwd,
                                       .user = body->user,
                                       .timeout_ms = body->timeout_ms,
                                       .cpu_timeout_ms = body->cpu_timeout_ms,
                                       .measure = true,
                                       .flags = AGENT_KILL_ON_CLOSE,
                                       .input = json_string_value(body->input_json),
                                       .input_len = json_string_length(body->input_json) };
    if (body->code)
        return read_code(x, o, err);
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
static const struct form_field file_fields[] = {
    { "data", FORM_ANY, FILE_AT(data), 0, 0 },
    { "encoding", FORM_TEXT, FILE_AT(encoding), 0, 0 },
    { "mode", FORM_TEXT, FILE_AT(mode), 0, 0 },
};

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
        if (form_read(exchange_caller(x), value, file_fields, ARRAY_LEN(file_fields), &body, err) <
            0)
            return err_wrap(err, "files: %.80s", path);
    }
    if (!json_is_string(body.data))
        return form_bad(exchange_caller(x), err, "files",
                        "'%.80s' is a text, or {data, encoding, mode}", path);
    if (body.mode && parse_mode(body.mode, &ret->mode, err) < 0)
        return form_bad(exchange_caller(x), err, "files",
                        "'%.80s': mode: octal permission bits are needed", path);
    ret->data = json_string_value(body.data);
    ret->len = json_string_length(body.data);
    if (!body.encoding || strcmp(body.encoding, "utf-8") == 0)
        return 0;
    if (strcmp(body.encoding, "base64") == 0)
        return decode(x, ret, ret_decoded, err);
    return form_bad(exchange_caller(x), err, "files",
                    "'%.80s': encoding: 'utf-8' or 'base64' is needed", path);
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
    limits_preset(&create->limits);
    if (v1_limits_read(x, o->body.limits, &create->limits, err) < 0 ||
        form_assignments(exchange_caller(x), "env", o->body.env, &o->env, &create->env_count, err) <
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
    *o = (struct order){ .body = { .output_limit = OUTPUT_DEFAULT,
                                   .files_limit = OUTPUT_DEFAULT,
                                   .timeout_ms = TIMEOUT_DEFAULT } };
    if (exchange_json(x, &o->json, err) < 0)
        return -1;
    if (form_read(exchange_caller(x), o->json, fields, ARRAY_LEN(fields), &o->body, err) < 0 ||
        read_command(x, o, err) < 0 || read_files(x, o, err) < 0 || read_sandbox(x, o, err) < 0 ||
        form_texts(exchange_caller(x), "return_files", o->body.wanted, &o->wanted, &o->wanted_count,
                   err) < 0)
        return -1;
    if (o->wanted_count > FILES_MOST)
        return form_bad(exchange_caller(x), err, "return_files", "%d at most", FILES_MOST);
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
    enum v1_wish wish;
    int r = order_read(x, &o, err);

    if (r == 0)
        r = v1_read_wish(x, o.body.stream, &wish, err);
    if (r == 0)
        r = serve(x, &o, wish, err);
    order_done(&o);
    return r;
}
