/* The server removes what its records say that nothing needs (server/ops/ops_gc.c), and tells each thing as it goes. Files of
 * imported images that no template has are root's, and are removed here. */
#include "base/json.h"
#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/common.h"
#include "cli/records.h"
#include "cli/report.h"
#include "template/image_store.h"
#include "template/template_store.h"

#include <string.h>
#include <unistd.h>

struct gc_options {
    bool dry_run, json;
    uint64_t older_ms, compress_ms;
};

#define AT(field) offsetof(struct gc_options, field)
#define NEVER     UINT64_MAX

/* clang-format off */
static const struct option gc_options[] = {
    { 0, "dry-run", OPTION_FLAG, AT(dry_run), NULL, COMPLETE_NONE,
      "only say what would be done" },
    { 0, "older-than", OPTION_DURATION, AT(older_ms), "AGE", COMPLETE_NONE,
      "also remove snapshots that are older than 30d, 12h …" },
    { 0, "compress", OPTION_DURATION, AT(compress_ms), "AGE", COMPLETE_NONE,
      "compress the memory of images that were not used for 7d, 0s …" },
    { 0, "json", OPTION_FLAG, AT(json), NULL, COMPLETE_NONE,
      "as JSON: what was done to what, and why" },
};

const struct verb gc_verb = {
    .name = "gc",
    .synopsis = "[OPTION…]",
    .summary = "remove what nothing needs any more, and make what is old smaller",
    .details = "Prints a line for each image, snapshot or volume as it goes: its id, its size, and why. Paused\n"
               "sandboxes that can still be resumed are kept, whatever their age. What cannot be done is\n"
               "said, and the rest is done; the exit code is then that of the first failure. The server\n"
               "does it, and must run; files of imported images are removed if root asks.",
    .options = gc_options,
    .option_count = ARRAY_LEN(gc_options),
    .run = verb_gc,
};
/* clang-format on */

struct gc {
    const struct gc_options *options;
    struct json_out json;
    uint64_t seen, removed, compressed, freed;
    int code; /* of the first failure */
};

/* ---- what was done ---- */

/* One line, or object: freed bytes of something, or why it could not be. Texts are the server's. */
static void tell(struct gc *gc, const char *action, const char *kind, const char *id,
                 uint64_t freed, const char *why, const struct err *failure)
{
    char name[80], reason[200], text[32];

    (void) report_text(name, sizeof name, id);
    (void) report_text(reason, sizeof reason, why);
    if (gc->options->json) {
        json_out_object(&gc->json, NULL);
        json_out_text(&gc->json, "kind", kind);
        json_out_text(&gc->json, "id", name);
        json_out_text(&gc->json, "action", action);
        json_out_text(&gc->json, "reason", reason);
        json_out_number(&gc->json, "freed_bytes", failure ? 0 : freed);
        json_out_text(&gc->json, "error", failure ? failure->msg : NULL);
        json_out_end(&gc->json);
    } else if (!failure) {
        printf("%s  %s  %s\n", name, report_size(text, sizeof text, freed), reason);
        (void) fflush(stdout); /* the next one may take its time */
    }
    if (failure) {
        int code = report_error(failure);

        gc->code = gc->code ? gc->code : code;
        return;
    }
    gc->freed += freed;
    *(strcmp(action, "remove") == 0 ? &gc->removed : &gc->compressed) += 1;
}

/* ---- by the server ---- */

/* 1: there is more to come. */
static int take_event(struct gc *gc, json_t *event, struct err *err)
{
    const char *type = show_text(event, "type");
    json_t *error = json_object_get(event, "error");
    struct err failure;

    if (strcmp(type, "error") == 0)
        return ask_error(error, err);
    if (strcmp(type, "end") == 0) {
        gc->seen += show_number(event, "seen");
        return 0;
    }
    if (strcmp(type, "item") != 0)
        return 1;
    if (json_is_object(error))
        (void) ask_error(error, &failure);
    tell(gc, show_text(event, "action"), show_text(event, "kind"), show_text(event, "id"),
         show_number(event, "freed_bytes"), show_text(event, "reason"),
         json_is_object(error) ? &failure : NULL);
    return 1;
}

static int read_events(struct gc *gc, struct call *call, struct err *err)
{
    struct ask_lines lines = { .call = call };
    json_t *event = NULL;
    int r = call_answer(call, err) < 0 || ask_check(call, err) < 0 ? -1 : 1, more = 1;

    while (r == 1 && more == 1 && (r = ask_next(&lines, &event, err)) == 1) {
        more = take_event(gc, event, err);
        json_decref(event);
    }
    ask_lines_done(&lines);
    if (r == 0)
        return err_set(err, ERR_UNAVAILABLE, "the server closed the connection");
    return r < 0 ? -1 : more;
}

static json_t *wish_of(const struct gc_options *options)
{
    json_t *wish = json_pack("{s:b}", "dry_run", options->dry_run);

    if (options->older_ms > 0)
        (void) json_object_set_new(wish, "older_than",
                                   json_real((double) options->older_ms / 1000));
    if (options->compress_ms != NEVER)
        (void) json_object_set_new(wish, "compress",
                                   json_real((double) options->compress_ms / 1000));
    return wish;
}

static int collect_records(struct gc *gc, struct err *err)
{
    json_t *wish = wish_of(gc->options);
    auto_free char *body = json_dumps(wish, JSON_COMPACT);
    const struct call_request request = { .method = "POST",
                                          .path = "/v1/host/gc",
                                          .accept = "application/x-ndjson",
                                          .body = body,
                                          .body_len = body ? strlen(body) : 0 };
    struct call call = CALL_NONE;
    const struct remote *remote;
    int r;

    json_decref(wish);
    if (!body)
        return err_set(err, ERR_NO_MEMORY, "no memory for a request");
    if (records_server(err) < 0 || server_find(&remote, err) < 0 ||
        call_open(&call, remote, &request, err) < 0)
        return -1;
    r = read_events(gc, &call, err);
    call_close(&call);
    return r;
}

/* ---- by root ---- */

static void tell_layer(void *context, const char *key, uint64_t bytes)
{
    struct gc *gc = context;

    gc->seen++;
    tell(gc, "remove", "layer", key, bytes, "no template has it", NULL);
}

/* Files of imported images. */
static int collect_layers(struct gc *gc, struct err *err)
{
    auto_close int templates_fd = -1;

    if (geteuid() != 0)
        return 0;
    if (template_store_look(report_state(), &templates_fd, err) < 0)
        return err->kind == ERR_NO_TEMPLATE ? 0 : -1;
    return image_store_collect(templates_fd, gc->options->dry_run, tell_layer, gc, err);
}

/* ---- the verb ---- */

static int collect(struct gc *gc, struct err *err)
{
    const char *would = gc->options->dry_run ? "would be " : "";
    char text[32];
    int r;

    if (gc->options->json) {
        json_out_init(&gc->json, stdout);
        json_out_object(&gc->json, NULL);
        json_out_bool(&gc->json, "dry_run", gc->options->dry_run);
        json_out_array(&gc->json, "items");
    }
    r = collect_records(gc, err);
    if (r == 0)
        r = collect_layers(gc, err);
    if (gc->options->json) {
        json_out_end(&gc->json);
        json_out_number(&gc->json, "removed", gc->removed);
        json_out_number(&gc->json, "compressed", gc->compressed);
        json_out_number(&gc->json, "freed_bytes", gc->freed);
        json_out_end(&gc->json);
        (void) json_out_finish(&gc->json);
    } else if (r == 0) {
        printf("%llu of %llu %sremoved", (unsigned long long) gc->removed,
               (unsigned long long) gc->seen, would);
        if (gc->options->compress_ms != NEVER)
            printf(", %llu %scompressed", (unsigned long long) gc->compressed, would);
        printf(", %s\n", report_size(text, sizeof text, gc->freed));
    }
    return r;
}

int verb_gc(int argc, char **argv)
{
    struct gc_options options = { .compress_ms = NEVER };
    struct gc gc = { .options = &options };
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&gc_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 0)
        return common_excess(&gc_verb, operands[0]);
    return collect(&gc, &err) < 0 ? report_error(&err) : report_end(gc.code);
}
