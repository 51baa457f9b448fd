#include "template/image_import.h"

#include "base/io.h"
#include "base/lockdown.h"
#include "base/own.h"
#include "base/parse.h"
#include "importer/message.h"
#include "template/image_store.h"
#include "template/image_tools.h"
#include "template/manifest.h"
#include "template/template_store.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NOTES_MAX 32
#define BIN       "/opt/cove/bin"

struct importing {
    const struct template_maker *maker;
    const struct image_spec *spec;
    struct image_store store;
    struct manifest manifest;
    char key[IMAGE_KEY_MAX]; /* "": not said yet */
    bool found;              /* the store has an image of that key */
    bool done;
    unsigned notes;
    struct err blob_err; /* of spec->open_blob: the reason of all that follows */
    int tools_fd, sock;
    pid_t pid;
};

/* ---- cove-import ---- */

static _Noreturn void be_importer(const struct importing *im, int sock, int program)
{
    const struct image_spec *spec = im->spec;
    const char *argv[12] = { "cove-import" };
    char most[24];
    size_t n = 1;
    int fds[] = { fcntl(sock, F_DUPFD, 100), fcntl(im->store.new_fd[0], F_DUPFD, 100),
                  fcntl(im->tools_fd, F_DUPFD, 100), fcntl(program, F_DUPFD, 100) };
    char *env[] = { NULL };
    struct err ignored;

    if (spec->archive_fd >= 0)
        argv[n++] = "--archive";
    if (spec->squash_ids)
        argv[n++] = "--squash-ids";
    if (spec->tag) {
        argv[n++] = "--tag";
        argv[n++] = spec->tag;
    }
    if (spec->manifest) {
        argv[n++] = "--manifest";
        argv[n++] = spec->manifest;
    }
    if (spec->bytes_most) {
        (void) snprintf(most, sizeof most, "%llu", (unsigned long long) spec->bytes_most);
        argv[n++] = "--max-bytes";
        argv[n++] = most;
    }
    argv[n] = NULL;
    (void) dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDIN_FILENO);
    if (fds[3] < 0 || dup2(fds[0], IMPORT_SOCKET) < 0 || dup2(fds[1], IMPORT_IMAGE) < 0 ||
        dup2(fds[2], IMPORT_TOOLS) < 0)
        _exit(126);
    (void) syscall(__NR_close_range, IMPORT_TOOLS + 1, (unsigned) fds[3] - 1, 0);
    (void) syscall(__NR_close_range, (unsigned) fds[3] + 1, ~0u, 0);
    (void) fcntl(fds[3], F_SETFD, FD_CLOEXEC);
    if (lockdown_bounds(0, &ignored) < 0 || setgroups(0, NULL) < 0 ||
        setresgid(spec->gid, spec->gid, spec->gid) < 0 ||
        setresuid(spec->uid, spec->uid, spec->uid) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || /* which a change of the user undoes */
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || chdir("/") < 0)
        _exit(126);
    (void) fexecve(fds[3], (char *const *) (uintptr_t) argv, env);
    _exit(127);
}

static int start(struct importing *im, struct err *err)
{
    auto_close int program = open(im->spec->program, O_RDONLY | O_CLOEXEC), theirs = -1;
    int pair[2];

    if (program < 0)
        return err_sys(err, errno, "open %s", im->spec->program);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "socketpair");
    im->sock = pair[0];
    theirs = pair[1];
    im->pid = fork();
    if (im->pid == 0)
        be_importer(im, theirs, program);
    return im->pid < 0 ? err_sys(err, errno, "start cove-import") : 0;
}

/* 0: it ended well. */
static int end(struct importing *im)
{
    int status = -1;

    own_close(&im->sock);
    if (im->pid <= 0)
        return -1;
    while (waitpid(im->pid, &status, 0) < 0 && errno == EINTR)
        ;
    im->pid = -1;
    return status;
}

/* ---- its messages ---- */

/* What a layout's files are called; nothing else is ever opened. */
static bool name_is_fine(const char *name)
{
    const char *hex = name + strlen(IMPORT_BLOBS);

    if (strcmp(name, IMPORT_INDEX) == 0)
        return true;
    return strncmp(name, IMPORT_BLOBS, strlen(IMPORT_BLOBS)) == 0 && strlen(hex) == 64 &&
           strspn(hex, "0123456789abcdef") == 64;
}

static int open_file(struct importing *im, const char *name, const char **ret_why)
{
    auto_close int fd = -1;
    struct stat st;

    *ret_why = "there is no such file";
    if (im->spec->archive_fd >= 0)
        return name[0] ? -1 : fcntl(im->spec->archive_fd, F_DUPFD_CLOEXEC, 3);
    if (!name_is_fine(name))
        return -1;
    if (im->spec->open_blob) {
        *ret_why = im->blob_err.msg;
        return strcmp(name, IMPORT_INDEX) == 0 ||
                       im->spec->open_blob(im->spec->context, name + strlen(IMPORT_BLOBS), &fd,
                                           &im->blob_err) < 0
                   ? -1
                   : take_fd(&fd);
    }
    fd = openat(im->spec->layout_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        *ret_why = strerror(errno);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -1;
    return take_fd(&fd);
}

static int on_open(struct importing *im, const char *name, struct err *err)
{
    const char *why;
    auto_close int fd = open_file(im, name, &why);
    char text[160];
    int len = fd < 0 ? snprintf(text, sizeof text, "%.90s of the image: %.50s", name, why)
                     : snprintf(text, sizeof text, "+");

    return io_send_fds(im->sock, text, (size_t) len, &fd, fd >= 0) == len
               ? 0
               : err_sys(err, errno, "answer cove-import");
}

/* The file that it has written stays as it is until it has ended: so long it could write to it. */
static int on_cut(struct importing *im, const char *text, struct err *err)
{
    (void) text;
    if (image_store_begin(&im->store, err) < 0)
        return -1;
    return io_send_fds(im->sock, "+", 1, &im->store.new_fd[im->store.new_count - 1], 1) == 1
               ? 0
               : err_sys(err, errno, "answer cove-import");
}

static int on_key(struct importing *im, const char *key, struct err *err)
{
    char digest[sizeof im->manifest.digest];

    if (im->key[0] || strlen(key) != 64 || strspn(key, "0123456789abcdef") != 64)
        return err_set(err, ERR_PROTOCOL, "cove-import said a key that is none");
    memcpy(im->key, key, sizeof im->key);
    if (im->spec->alone)
        return 0;
    memcpy(digest, im->manifest.digest, sizeof digest);
    im->found = image_store_find(&im->store, key, &im->manifest);
    memcpy(im->manifest.digest, digest, sizeof digest); /* another name may have had another */
    return 0;
}

static int on_percent(struct importing *im, const char *text, struct err *err)
{
    uint64_t percent;

    if (parse_u64(text, &percent, err) < 0)
        return -1;
    template_step(im->maker, percent < 99 ? (unsigned) percent : 99, "reading layers", NULL);
    return 0;
}

static int on_note(struct importing *im, const char *text, struct err *err)
{
    char shown[200];

    (void) err;
    (void) snprintf(shown, sizeof shown, "%s", text);
    for (char *c = shown; *c; c++)
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            *c = '?';
    if (im->notes++ < NOTES_MAX)
        template_note(im->maker, "%s", shown);
    return 0;
}

/* sudo is found before the image's own programs. */
static int on_variable(struct importing *im, const char *pair, struct err *err)
{
    char path[MANIFEST_WORDS_MAX];

    if (strncmp(pair, "PATH=", 5) != 0)
        return manifest_env(&im->manifest, pair, err);
    (void) snprintf(path, sizeof path, "PATH=" BIN "%s%s", pair[5] ? ":" : "", pair + 5);
    return manifest_env(&im->manifest, path, err);
}

static int on_line(struct importing *im, const char *line, struct err *err)
{
    if (strncmp(line, "env=", 4) == 0)
        return on_variable(im, line + 4, err);
    return manifest_set(&im->manifest, line, err);
}

/* The last word, and the one that the user sees. */
static int on_failure(struct importing *im, const char *text, struct err *err)
{
    size_t len = strcspn(text, " ");
    uint32_t kind = ERR_INVALID;
    char shown[ERR_MSG_MAX];

    (void) im;
    for (uint32_t i = 1; i < ERR_KIND_COUNT; i++)
        if (strlen(err_kind_info(i)->name) == len && memcmp(err_kind_info(i)->name, text, len) == 0)
            kind = i;
    (void) snprintf(shown, sizeof shown, "%s", text[len] ? text + len + 1 : "cove-import failed");
    for (char *c = shown; *c; c++)
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            *c = '?';
    return err_set(err, (enum err_kind) kind, "%s", shown);
}

static int on_done(struct importing *im, const char *text, struct err *err)
{
    (void) text, (void) err;
    im->done = true;
    return 0;
}

static int on_message(struct importing *im, char *text, size_t len, struct err *err)
{
    static const struct {
        char letter;
        int (*fn)(struct importing *im, const char *text, struct err *err);
    } rows[] = { { 'o', on_open }, { 'c', on_cut },  { 'k', on_key },     { 'p', on_percent },
                 { 'n', on_note }, { 'm', on_line }, { 'e', on_failure }, { 'd', on_done } };

    text[len] = '\0';
    for (size_t i = 0; strlen(text) == len && i < ARRAY_LEN(rows); i++)
        if (text[0] == rows[i].letter && (text[1] == ' ' || text[1] == '\0'))
            return rows[i].fn(im, text + (text[1] ? 2 : 1), err);
    return err_set(err, ERR_PROTOCOL, "cove-import said something that it must not say");
}

static int listen_to(struct importing *im, struct err *err)
{
    auto_free char *text = malloc(IMPORT_MESSAGE_MAX + 1);

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for an import");
    while (!im->done && !im->found) {
        size_t fds = 0;
        ssize_t n = io_recv_fds(im->sock, text, IMPORT_MESSAGE_MAX, NULL, 0, &fds);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(
                err, ERR_INTERNAL,
                "cove-import ended before it was done: it may have run out of its memory "
                "or time");
        if (on_message(im, text, (size_t) n, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the whole ---- */

static int check_kernel(struct err *err)
{
    auto_close int fs = (int) syscall(__NR_fsopen, "erofs", FSOPEN_CLOEXEC);

    if (fs < 0 && errno == ENODEV)
        return err_set(err, ERR_UNSUPPORTED,
                       "this kernel has no EROFS, which templates from images need");
    return 0;
}

/* A tenant's image counts as what the host has of it, whatever cove-import says. */
static int measure(struct importing *im, struct err *err)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < im->store.new_count; i++) {
        struct stat st;

        if (fstat(im->store.new_fd[i], &st) < 0)
            return err_sys(err, errno, "measure the image");
        sum += (uint64_t) st.st_size;
    }
    if (im->manifest.bytes < sum)
        im->manifest.bytes = sum;
    return 0;
}

/* All files but the last: by their bytes, whatever cove-import says of them. */
static int keep_below(struct importing *im, struct err *err)
{
    char *below = im->manifest.below;

    below[0] = '\0';
    for (size_t i = 0; i + 1 < im->store.new_count; i++) {
        char key[IMAGE_KEY_MAX];
        size_t len = strlen(below);

        if (image_store_name(&im->store, i, key, err) < 0 ||
            image_store_keep(&im->store, i, key, NULL, err) < 0)
            return -1;
        (void) snprintf(below + len, sizeof im->manifest.below - len, "%s%s", len ? "," : "", key);
    }
    return 0;
}

static int make_image(struct importing *im, struct err *err)
{
    int r = start(im, err), status;
    size_t last;

    if (r == 0)
        r = listen_to(im, err);
    if ((r < 0 || im->found) && im->pid > 0)
        (void) kill(im->pid, SIGKILL);
    status = end(im);
    if (r < 0 && im->blob_err.kind != ERR_NONE)
        *err = im->blob_err;
    if (r < 0 || im->found)
        return r;
    if (status != 0 || !im->key[0])
        return err_set(err, ERR_INTERNAL, "cove-import failed after its last word");
    if (!manifest_has_env(&im->manifest, "PATH") &&
        manifest_env(&im->manifest, "PATH=" TEMPLATE_PATH, err) < 0)
        return -1;
    im->manifest.kind = MANIFEST_IMAGE;
    (void) snprintf(im->manifest.root, sizeof im->manifest.root, "root");
    last = im->store.new_count - 1;
    if (im->spec->alone &&
        (measure(im, err) < 0 || image_store_name(&im->store, last, im->key, err) < 0))
        return -1;
    if (keep_below(im, err) < 0)
        return -1;
    memcpy(im->manifest.layer, im->key, sizeof im->manifest.layer);
    return image_store_keep(&im->store, last, im->key, im->spec->alone ? NULL : &im->manifest, err);
}

/* "root", and "root.1" and so on: what is below, the lowest first. */
static int link_files(const struct importing *im, int build_fd, struct err *err)
{
    for (size_t i = 0; i < manifest_below_count(&im->manifest); i++) {
        char key[IMAGE_KEY_MAX], name[TEMPLATE_BELOW_NAME];

        manifest_below_at(&im->manifest, i, key);
        template_below_name(name, "root", i);
        if (image_store_link(&im->store, key, build_fd, name, err) < 0)
            return -1;
    }
    return image_store_link(&im->store, im->key, build_fd, "root", err);
}

static int publish(struct importing *im, const char *state, int templates_fd, struct err *err)
{
    const char *name = im->spec->name;
    auto_close int build_fd = -1;
    char build[96];
    struct err ignored;
    int r;

    (void) snprintf(im->manifest.image, sizeof im->manifest.image, "%s", im->spec->from);
    (void) snprintf(im->manifest.description, sizeof im->manifest.description, "image %s",
                    im->spec->from);
    if (template_build_dir(templates_fd, name, build, sizeof build, &build_fd, err) < 0)
        return -1;
    r = link_files(im, build_fd, err);
    if (r == 0)
        r = template_publish(im->maker, state, templates_fd, name, build, &im->manifest, err);
    (void) tree_remove(templates_fd, build, &ignored);
    return r;
}

static int import_locked(struct importing *im, const char *state, int templates_fd, struct err *err)
{
    if (image_store_open(&im->store, templates_fd, err) < 0 ||
        image_store_begin(&im->store, err) < 0 ||
        image_tools_make(im->maker, &im->tools_fd, err) < 0 || make_image(im, err) < 0)
        return -1;
    return publish(im, state, templates_fd, err);
}

int template_import(const struct template_maker *maker, const char *state,
                    const struct image_spec *spec, struct image_result *ret, struct err *err)
{
    auto_free struct importing *im = calloc(1, sizeof *im);
    auto_close int templates_fd = -1, lock_fd = -1;
    uint64_t started = io_now_ms();
    int r;

    if (!im)
        return err_set(err, ERR_NO_MEMORY, "no memory for an import");
    if (!name_ok(spec->name))
        return err_set(err, ERR_INVALID, "'%.60s' is not a template name", spec->name);
    if (geteuid() != 0)
        return err_set(err, ERR_DENIED, "importing a template needs root");
    *im = (struct importing){ .maker = maker,
                              .spec = spec,
                              .tools_fd = -1,
                              .sock = -1,
                              .pid = -1,
                              .store = { .dir_fd = -1, .lock_fd = -1 } };
    if (check_kernel(err) < 0 || template_store_open(state, &templates_fd, err) < 0 ||
        template_lock(maker, templates_fd, spec->name, &lock_fd, err) < 0)
        return -1;
    r = import_locked(im, state, templates_fd, err);
    image_store_close(&im->store);
    own_close(&im->tools_fd);
    *ret = (struct image_result){ .was_there = im->found,
                                  .bytes = im->manifest.bytes,
                                  .files = im->manifest.files,
                                  .wall_ms = io_now_ms() - started };
    if (r < 0 && !spec->alone) /* such a name stays private */
        return err_wrap(err, "template '%s'", spec->name);
    return r;
}
