/* What root can ask when the server is down: which sandboxes the keeper has, and to end them. */
#include "cli/keeper.h"
#include "base/own.h"
#include "cli/common.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/saved.h"

#include <string.h>

struct keeper_options {
    bool json, quiet, all, running;
};

#define AT(field) offsetof(struct keeper_options, field)

/* clang-format off */
static const struct option keeper_options[] = {
    { 0,   "json",  OPTION_FLAG, AT(json),  NULL, COMPLETE_NONE, "as JSON" },
    { 'q', "quiet", OPTION_FLAG, AT(quiet), NULL, COMPLETE_NONE, "ids only" },
    { 'a', "all",   OPTION_FLAG, AT(all),   NULL, COMPLETE_NONE, "every sandbox of this state directory" },
    { 0,   "running", OPTION_FLAG, AT(running), NULL, COMPLETE_NONE, "every one but those that are paused to disk" },
};
const struct verb keeper_ps_verb = {
    .name = "keeper-ps", .synopsis = "[OPTION…]", .summary = "list the sandboxes of the keeper",
    .options = keeper_options, .option_count = ARRAY_LEN(keeper_options), .run = keeper_ps,
};
const struct verb keeper_kill_verb = {
    .name = "keeper-kill", .synopsis = "[OPTION…] SANDBOX…", .summary = "destroy sandboxes of the keeper",
    .options = keeper_options, .option_count = ARRAY_LEN(keeper_options), .run = keeper_kill,
};
/* clang-format on */

/* One that is paused to disk has no process: its pid is 0. */
static void put_json(struct json_out *json, const struct keeper_sandbox *s)
{
    json_out_object(json, NULL);
    json_out_text(json, "id", s->id);
    json_out_text(json, "name", s->name[0] ? s->name : NULL);
    json_out_text(json, "template", s->template);
    json_out_text(json, "state", keeper_life_name(s->life));
    json_out_text(json, "isolation", isolation_name(s->isolation));
    json_out_text(json, "tier", s->life != LIFE_PAUSED ? NULL : s->pid ? "memory" : "disk");
    json_out_bool(json, "root", s->flags & KEEPER_FLAG_ROOT);
    json_out_bool(json, "tied", s->flags & KEEPER_FLAG_TIED);
    json_out_signed(json, "pid", s->pid);
    json_out_number(json, "uid_base", s->uid_base);
    json_out_text(json, "disk_kind", keeper_disk_name(s->disk_kind));
    json_out_number(json, "created_ms", s->created_ms);
    json_out_end(json);
}

static void put_row(struct table *table, const struct keeper_sandbox *s)
{
    char text[32];

    table_cell(table, "%s", s->id);
    table_cell(table, "%s", s->name[0] ? s->name : "-");
    table_cell(table, "%s", s->template);
    table_cell(table, "%s%s", keeper_life_name(s->life),
               s->life == LIFE_PAUSED && !s->pid ? ", disk" : "");
    table_cell(table, "%d", s->pid);
    table_cell(table, "%s", report_size(text, sizeof text, s->limits.memory_bytes));
    table_cell(table, "%s", isolation_name(s->isolation));
}

static void print(const struct keeper_sandbox *list, size_t count, enum listing_form form)
{
    static const char *const headings[] = { "ID",   "NAME",    "TEMPLATE", "STATE",
                                            ">PID", ">MEMORY", "ISOLATION" };
    struct listing l;

    listing_init(&l, form, ARRAY_LEN(headings), headings);
    for (size_t i = 0; i < count; i++) {
        if (form == LISTING_JSON)
            put_json(&l.json, &list[i]);
        else if (form == LISTING_NAMES)
            printf("%s\n", list[i].id);
        else
            put_row(&l.table, &list[i]);
    }
    (void) listing_end(&l, 0);
}

int keeper_ps(int argc, char **argv)
{
    struct keeper_options options = { .json = false };
    auto_free struct keeper_sandbox *list = NULL;
    auto_link struct link link = { .fd = -1 };
    struct err err;
    char **operands;
    size_t listed;
    int count, code;

    code = common_parse(&keeper_ps_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (common_open(&link, &err) < 0 || saved_list(&link, &list, &listed, &err) < 0)
        return report_error(&err);
    print(list, listed,
          options.json    ? LISTING_JSON
          : options.quiet ? LISTING_NAMES
                          : LISTING_TABLE);
    return report_end(0);
}

/* Also one that is paused to disk, which is an image. */
static int kill_one(struct link *link, const char *sandbox, void *context, struct err *err)
{
    struct keeper_image image;

    (void) context;
    if (sandbox_destroy(link, sandbox, err) == 0)
        return 0;
    if (err->kind != ERR_NO_SANDBOX || saved_find(link, sandbox, &image, err) < 0)
        return -1;
    return image_drop(link, image.id, err);
}

/* What is paused to disk stays. */
static int kill_in_memory(struct link *link, const char *sandbox, void *context, struct err *err)
{
    (void) context;
    return sandbox_destroy(link, sandbox, err) == 0 || err->kind == ERR_NO_SANDBOX ? 0 : -1;
}

int keeper_kill(int argc, char **argv)
{
    struct keeper_options options = { .json = false };
    char **names;
    int count, code;

    code = common_parse(&keeper_kill_verb, argc, argv, &options, &names, &count);
    if (code >= 0)
        return code;
    return saved_each(&keeper_kill_verb, options.all || options.running, names, count,
                      options.running ? kill_in_memory : kill_one, NULL);
}
