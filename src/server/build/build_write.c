/* Files of cove's own in the sandbox of a build: a directory for WORKDIR, a line of /etc/passwd for USER, and the words of ENTRYPOINT
 * and CMD. The agent reads and writes them; a template need not have a shell. */
#include "server/build/build_own.h"

#include "base/own.h"

#include <string.h>

#define OWN_DIR  "/opt/cove"
#define TEXT_MAX (1u << 20)
#define FIRST_ID 1000u  /* of a user that is made */
#define LAST_ID  65533u /* the last before that of `nobody` */
#define IDS_MAX  65535u

static struct ops_file file_at(const struct run *run, const char *path)
{
    return (
        struct ops_file){ .sandbox = job_record(run->job)->sandbox, .user = "root", .path = path };
}

void owner_split(const char *text, char room[160], struct ops_file *file)
{
    char *colon;

    (void) snprintf(room, 160, "%s", text);
    colon = strchr(room, ':');
    if (colon)
        *colon++ = '\0';
    file->owner = room[0] ? room : NULL;
    file->group = colon && *colon ? colon : NULL;
}

/* ---- reading and writing ---- */

/* A whole file, NUL-terminated; the caller's to free. *ret NULL: there is none. */
static int read_text(struct run *run, const char *path, char **ret, size_t *ret_len,
                     struct err *err)
{
    struct ops_file file = file_at(run, path);
    auto_free struct file_info *info = calloc(1, sizeof *info);
    auto_free char *text = malloc(TEXT_MAX + 1);
    struct stream stream;
    const void *data;
    uint32_t n;
    size_t len = 0;
    int r;

    *ret = NULL;
    *ret_len = 0;
    if (!info || !text)
        return err_set(err, ERR_NO_MEMORY, "no memory for a file");
    if (ops_file_read(&run->ops, &file, 0, 0, &stream, info, err) < 0)
        return err->kind == ERR_NO_PATH ? 0 : -1;
    while ((r = files_read_next(&stream, &data, &n, err)) == 1) {
        if (n > TEXT_MAX - len) {
            r = err_set(err, ERR_TOO_BIG, "%s is longer than %u bytes", path, TEXT_MAX);
            break;
        }
        memcpy(text + len, data, n);
        len += n;
    }
    stream_close(&stream);
    if (r < 0)
        return -1;
    text[len] = '\0';
    *ret_len = len;
    *ret = take_ptr(&text);
    return 0;
}

/* What goes into a directory in one operation. */
struct item {
    const char *path, *text; /* text NULL: `same` is the file that it is another name of */
    size_t len;
    const char *same;
};

static int send_item(struct stream *stream, const struct item *item, int64_t now_ns,
                     struct err *err)
{
    struct agent_reply entry = { .path = item->path,
                                 .type = ENTRY_FILE,
                                 .mode = 0644,
                                 .size = item->len,
                                 .mtime_ns = now_ns,
                                 .target = item->same };

    if (files_unpack_entry(stream, &entry, err) < 0)
        return -1;
    if (!item->text)
        return 0;
    return item->len > 0 && files_write_next(stream, item->text, item->len, err) < 0
               ? -1
               : files_unpack_entry_end(stream, err);
}

static int write_items(struct run *run, const struct ops_file *file, const struct item *items,
                       size_t count, struct err *err)
{
    int64_t now_ns = (int64_t) store_now_ms() * 1000000;
    uint64_t entries, bytes;
    struct stream stream;
    struct err why = { .kind = ERR_NONE };
    int r = 0;

    if (ops_file_unpack(&run->ops, file, AGENT_PARENTS | AGENT_THROUGH, &stream, err) < 0)
        return -1;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = send_item(&stream, &items[i], now_ns, &why);
    r = ops_file_unpack_end(&run->ops, file, &stream, r < 0 ? &why : NULL, &entries, &bytes, err);
    if (r < 0 && why.kind != ERR_NONE)
        *err = why;
    stream_close(&stream);
    return r;
}

int write_directory(struct run *run, const char *path, const char *owner, struct err *err)
{
    struct ops_file file = file_at(run, path);
    char room[160];

    owner_split(owner, room, &file);
    return write_items(run, &file, NULL, 0, err);
}

/* ---- ENTRYPOINT and CMD ---- */

/* Each with its NUL. */
static char *join_words(const struct build_step *step, size_t *ret_len)
{
    size_t size = 1, at = 0;
    char *text;

    for (size_t i = 0; i < json_array_size(step->args); i++)
        size += strlen(step_arg(step, i)) + 1;
    text = malloc(size);
    for (size_t i = 0; text && i < json_array_size(step->args); i++)
        at += (size_t) (stpcpy(text + at, step_arg(step, i)) - (text + at)) + 1;
    *ret_len = at;
    return text;
}

struct words {
    char *text;
    size_t len;
};

static int put_words(struct run *run, const struct words *entrypoint, const struct words *cmd,
                     struct err *err)
{
    struct ops_file file = file_at(run, OWN_DIR), program = file_at(run, OWN_DIR "/bin/entrypoint");
    auto_free struct file_info *info = calloc(1, sizeof *info);
    size_t len = entrypoint->len + cmd->len;
    auto_free char *both = malloc(len + 1);
    struct item items[] = {
        { "entrypoint.words", entrypoint->text ? entrypoint->text : "", entrypoint->len, NULL },
        { "cmd.words", cmd->text ? cmd->text : "", cmd->len, NULL },
        { "entrypoint", both, len, NULL },
        { "bin/entrypoint", NULL, 0, "bin/sudo" },
    };
    bool there;

    if (!info || !both)
        return err_set(err, ERR_NO_MEMORY, "no memory for a command");
    memcpy(both, items[0].text, entrypoint->len);
    memcpy(both + entrypoint->len, items[1].text, cmd->len);
    there = ops_file_stat(&run->ops, &program, 0, info, err) == 0;
    if (!there && err->kind != ERR_NO_PATH)
        return -1;
    return write_items(run, &file, items, ARRAY_LEN(items) - there, err);
}

/* agent/entrypoint.c runs both, one behind the other. What a template had as one list counts as CMD. */
int write_words(struct run *run, const struct build_step *step, struct err *err)
{
    struct words entrypoint = { NULL, 0 }, cmd = { NULL, 0 }, whole = { NULL, 0 };
    struct words *mine = step->type == STEP_ENTRYPOINT ? &entrypoint : &cmd;
    int r = -1;

    if (read_text(run, OWN_DIR "/entrypoint.words", &entrypoint.text, &entrypoint.len, err) == 0 &&
        read_text(run, OWN_DIR "/cmd.words", &cmd.text, &cmd.len, err) == 0 &&
        read_text(run, OWN_DIR "/entrypoint", &whole.text, &whole.len, err) == 0) {
        if (!entrypoint.text && !cmd.text) {
            cmd = whole;
            whole.text = NULL;
        }
        free(mine->text);
        mine->text = join_words(step, &mine->len);
        r = mine->text ? put_words(run, &entrypoint, &cmd, err)
                       : err_set(err, ERR_NO_MEMORY, "no memory for a command");
    }
    free(entrypoint.text);
    free(cmd.text);
    free(whole.text);
    return r;
}

/* ---- USER ---- */

/* The number in the third part of a line of passwd or group; false: it has none. */
static bool id_of(const char *line, size_t len, uint32_t *ret)
{
    const char *end = line + len;
    uint32_t id = 0;

    for (int i = 0; i < 2; i++) {
        line = line < end ? memchr(line, ':', (size_t) (end - line)) : NULL;
        if (!line++)
            return false;
    }
    if (line == end || *line < '0' || *line > '9')
        return false;
    for (; line < end && *line >= '0' && *line <= '9' && id <= LAST_ID; line++)
        id = id * 10 + (uint32_t) (*line - '0');
    *ret = id;
    return true;
}

static bool id_is_taken(const char *text, uint32_t id)
{
    uint32_t other;

    for (; *text; text += strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n'))
        if (id_of(text, strcspn(text, "\n"), &other) && other == id)
            return true;
    return false;
}

static char *append_line(const char *text, const char *line)
{
    size_t len = text ? strlen(text) : 0;
    char *whole = NULL;

    if (asprintf(&whole, "%s%s%s\n", len ? text : "", len && text[len - 1] != '\n' ? "\n" : "",
                 line) < 0)
        return NULL;
    return whole;
}

/* Lines in both files, and a home. A number is a user of that name and id. */
static int add_user(struct run *run, const char *name, struct err *err)
{
    struct ops_file etc = file_at(run, "/etc");
    auto_free char *passwd = NULL, *group = NULL, *more_passwd = NULL, *more_group = NULL;
    bool number = !name[strspn(name, "0123456789")];
    uint32_t id = FIRST_ID;
    char line[256], home[128];
    size_t len;

    if (read_text(run, "/etc/passwd", &passwd, &len, err) < 0 ||
        read_text(run, "/etc/group", &group, &len, err) < 0)
        return -1;
    while (!number && id <= LAST_ID &&
           (id_is_taken(passwd ? passwd : "", id) || id_is_taken(group ? group : "", id)))
        id++;
    if (number && (strlen(name) > 5 || sscanf(name, "%5u", &id) != 1))
        id = IDS_MAX + 1;
    if (id > (number ? IDS_MAX : LAST_ID))
        return err_set(err, ERR_INVALID, "USER %s: a sandbox has the ids 0 to %u", name, IDS_MAX);
    (void) snprintf(home, sizeof home, "%s%s", number ? "/" : "/home/", number ? "" : name);
    (void) snprintf(line, sizeof line, "%s:x:%u:%u::%s:/bin/sh", name, id, id, home);
    more_passwd = append_line(passwd, line);
    (void) snprintf(line, sizeof line, "%s:x:%u:", name, id);
    more_group = append_line(group, line);
    if (!more_passwd || !more_group)
        return err_set(err, ERR_NO_MEMORY, "no memory for a user");
    if (write_items(run, &etc,
                    (const struct item[]){ { "passwd", more_passwd, strlen(more_passwd), NULL },
                                           { "group", more_group, strlen(more_group), NULL } },
                    2, err) < 0)
        return -1;
    return number ? 0 : write_directory(run, home, name, err);
}

/* By the template's own program, which knows its files best, if it has one. */
int write_user(struct run *run, struct err *err)
{
    const char *const make[] = { "useradd", "-m", "-s", "/bin/bash", run->state.user };
    struct ops_command command = { .args = make,
                                   .arg_count = ARRAY_LEN(make),
                                   .user = "root",
                                   .cwd = "/",
                                   .timeout_ms = job_spec(run->job)->step_ms };
    struct ops_file root = { .sandbox = job_record(run->job)->sandbox,
                             .user = run->state.user,
                             .path = "/" };
    auto_free struct file_info *info = calloc(1, sizeof *info);

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for a user");
    if (ops_file_stat(&run->ops, &root, 0, info, err) == 0)
        return 0;
    if (err->kind != ERR_NO_USER)
        return -1;
    if (!run->state.user[strspn(run->state.user, "0123456789")])
        return add_user(run, run->state.user, err);
    if (run_command(run, &command, NULL, "useradd", err) == 0)
        return 0;
    return err->kind == ERR_NO_PATH ? add_user(run, run->state.user, err) : -1;
}
