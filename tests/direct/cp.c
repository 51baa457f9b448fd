#include "base/own.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/verbs.h"
#include "direct/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

struct cp_options {
    const char *user;
    uint64_t most_bytes;
};

/* clang-format off */
static const struct option cp_options[] = {
    { 'u', "user", OPTION_TEXT, offsetof(struct cp_options, user), "NAME", COMPLETE_NONE,
      "with the rights of this user of the sandbox" },
    { 0, "max", OPTION_SIZE, offsetof(struct cp_options, most_bytes), "SIZE", COMPLETE_NONE,
      "take no more than this out of a sandbox (16 GiB; 0: any)" },
};

const struct verb cp_verb = {
    .name = "cp",
    .synopsis = "[OPTION…] SOURCE… DESTINATION",
    .summary = "copy files and directories into or out of a sandbox",
    .details =
        "One side is SANDBOX:PATH, the other a path of this host, or - for stdin or stdout.\n"
        "PATH is absolute, or relative to the user's home. A destination that is a directory\n"
        "gets the sources by their own names; 'DIR/.' as a source is what is in DIR. Modes are\n"
        "kept (setuid bits are not), links are copied as links, the copies belong to the user who copies.\n\n"
        "  cove cp project box:           cove cp box:project/out.png .\n"
        "  cove cp - box:/tmp/in.txt      cove cp box:log.txt - | less",
    .options = cp_options,
    .option_count = sizeof cp_options / sizeof cp_options[0],
    .operands = COMPLETE_COPY,
    .run = verb_cp,
};
/* clang-format on */

#define MOST_DEFAULT (16ull << 30)

struct place {
    bool is_sandbox;
    bool is_stdio;
    char sandbox[KEEPER_NAME_MAX];
    const char *path;
};

/* SANDBOX:PATH, when a name stands before the first colon; "./a:b" is a file of this host. */
static void place_parse(const char *text, struct place *ret)
{
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t) (colon - text) : 0;

    *ret = (struct place){ .path = text, .is_stdio = strcmp(text, "-") == 0 };
    if (!colon || len == 0 || len >= KEEPER_NAME_MAX)
        return;
    memcpy(ret->sandbox, text, len);
    if (!name_ok(ret->sandbox))
        return;
    ret->is_sandbox = true;
    ret->path = colon[1] ? colon + 1 : ".";
}

/* The last component, without slashes behind it: "a/b/" is "b". "" for "/", "." and "..". */
static void last_name(const char *path, char *out, size_t size)
{
    size_t end = strlen(path), begin;

    while (end > 0 && path[end - 1] == '/')
        end--;
    begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    (void) snprintf(out, size, "%.*s", (int) (end - begin), path + begin);
    if (!copy_name_ok(out))
        out[0] = '\0';
}

static int in_one(struct copy *copy, const char *from, const char *to, bool to_is_dir,
                  struct err *err)
{
    char name[256], path[AGENT_PATH_MAX];

    last_name(from, name, sizeof name);
    if (!to_is_dir || !name[0])
        return copy_in(copy, from, to, err);
    if (copy_join(path, to, name, err) < 0)
        return -1;
    return copy_in(copy, from, path, err);
}

static int copy_into_sandbox(struct copy *copy, const struct place *from, size_t count,
                             const struct place *to, struct err *err)
{
    auto_free struct file_info *info = calloc(1, sizeof *info);
    bool is_dir;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for a copy");
    /* What is not there is for the copy to make, or to complain about in its own words. */
    if (files_stat(&copy->at, to->path, 0, info, err) < 0 && err->kind != ERR_NO_PATH)
        return -1;
    is_dir = info->type == ENTRY_DIR;
    if (!is_dir && count > 1)
        return err_set(err, ERR_NOT_DIR, "cp: '%s' is not a directory of the sandbox", to->path);
    for (size_t i = 0; i < count; i++) {
        if (from[i].is_stdio && is_dir)
            return err_set(err, ERR_IS_DIR, "cp: '%s' is a directory: give stdin a name", to->path);
        if (from[i].is_stdio ? copy_in_stdin(copy, to->path, err) < 0
                             : in_one(copy, from[i].path, to->path, is_dir, err) < 0)
            return -1;
    }
    return 0;
}

/* The host directory that gets the copy, and the name in it ("" when the name is the source's). */
static int open_destination(const char *path, int *ret_fd, char name[256], struct err *err)
{
    char parent[PATH_MAX];
    size_t len = strlen(path);
    struct stat st;
    int fd;

    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    name[0] = '\0';
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && len < sizeof parent && len > 0) {
        last_name(path, name, 256);
        while (len > 0 && path[len - 1] == '/')
            len--;
        while (len > 0 && path[len - 1] != '/')
            len--;
        (void) snprintf(parent, sizeof parent, "%.*s", (int) len, len ? path : "");
        fd = name[0] ? open(len ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (fd >= 0 && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode) &&
            !S_ISLNK(st.st_mode)) {
            (void) close(fd);
            return err_set(err, ERR_NOT_FILE, "cp: '%s' is neither a file nor a directory", path);
        }
    }
    if (fd < 0)
        return err_sys(err, errno, "cp: %s", path);
    *ret_fd = fd;
    return 0;
}

static int copy_out_of_sandbox(struct copy *copy, const struct place *from, size_t count,
                               const struct place *to, struct err *err)
{
    auto_close int fd = -1;
    char as[256], name[256];

    if (to->is_stdio)
        return count == 1 ? copy_out_stdout(copy, from->path, err)
                          : err_set(err, ERR_USAGE, "cp: only one file can go to stdout");
    if (open_destination(to->path, &fd, as, err) < 0)
        return -1;
    if (as[0] && count > 1)
        return err_set(err, ERR_NOT_DIR, "cp: '%s' is not a directory", to->path);
    for (size_t i = 0; i < count; i++) {
        last_name(from[i].path, name, sizeof name);
        if (!as[0] && !name[0]) {
            if (copy_out_into(copy, from[i].path, fd, err) < 0)
                return -1;
        } else if (copy_out(copy, from[i].path, fd, as[0] ? as : name, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* All sources on one side, the destination on the other; one sandbox. */
static int check_sides(const struct place *places, size_t count, struct err *err)
{
    const struct place *to = &places[count - 1];

    for (size_t i = 0; i + 1 < count; i++) {
        if (places[i].is_sandbox == to->is_sandbox)
            return err_set(err, ERR_USAGE,
                           to->is_sandbox ? "cp: one side must be on this host"
                                          : "cp: one side must be SANDBOX:PATH");
        if (places[i].is_sandbox != places[0].is_sandbox ||
            strcmp(places[i].sandbox, places[0].sandbox) != 0)
            return err_set(err, ERR_USAGE, "cp: all sources must be in one sandbox");
    }
    return 0;
}

static int copy_places(struct copy *copy, struct place *places, size_t count, struct err *err)
{
    struct place *to = &places[count - 1];

    saved_id_of(to->is_sandbox ? to->sandbox : places[0].sandbox, sizeof to->sandbox);
    copy->at.sandbox = to->is_sandbox ? to->sandbox : places[0].sandbox;
    return to->is_sandbox ? copy_into_sandbox(copy, places, count - 1, to, err)
                          : copy_out_of_sandbox(copy, places, count - 1, to, err);
}

int verb_cp(int argc, char **argv)
{
    struct cp_options options = { .most_bytes = MOST_DEFAULT };
    auto_free struct place *places = NULL;
    struct copy copy = { .shows = isatty(STDERR_FILENO) };
    struct link link;
    struct err err = { 0 };
    char **operands;
    int count, code, r;

    code = common_parse(&cp_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count < 2)
        return common_missing(&cp_verb, count ? "a destination" : "a source");
    places = calloc((size_t) count, sizeof *places);
    for (int i = 0; places && i < count; i++)
        place_parse(operands[i], &places[i]);
    if (!places || check_sides(places, (size_t) count, &err) < 0 || common_open(&link, &err) < 0)
        return report_error(&err);
    copy.at = (struct files_at){ .link = &link, .user = options.user };
    copy.most_bytes = options.most_bytes;
    r = copy_places(&copy, places, (size_t) count, &err);
    copy_progress_end(&copy);
    link_close(&link);
    if (copy.reader_gone)
        return 128 + SIGPIPE;
    if (r < 0)
        return report_error(&err);
    return copy.skipped ? err_kind_info(ERR_NOT_FILE)->exit_code : 0;
}
