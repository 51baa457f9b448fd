/* Uploads for COPY. Each is a file <state>/server/build-files/<tenant>+<hash>; the name is made of characters that were checked,
 * and the archive is read only when it goes into the build's sandbox. What a build itself takes out of its stages is there, too,
 * as <tenant>+part-<build>-<hash>: it goes with the build, or else at the next start. */
#include "server/build/build_own.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "http/gunzip.h"
#include "server/guard/quota.h"
#include "server/life/uploads.h"
#include "server/ops/ops_tar.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PIECE      65536
#define QUOTA_LOOK (1u << 20)  /* bytes of an upload between two looks at the quota */
#define ALL_LOOK   (16u << 20) /* and at what else the tenant sends at the same time */

bool build_hash_ok(const char *hash)
{
    return strlen(hash) == BUILD_HASH_LEN && strspn(hash, "0123456789abcdef") == BUILD_HASH_LEN;
}

/* build: whose own files these are; "": an upload. */
static int path_of(struct app *app, const char *tenant, const char *build, const char *hash,
                   char out[PATH_MAX], struct err *err)
{
    char folder[PATH_MAX];
    int n;

    uploads_folder(app, folder);
    n = snprintf(out, PATH_MAX, "%s/%s+%s%s%s%s", folder, tenant, build[0] ? UPLOADS_PART : "",
                 build, build[0] ? "-" : "", hash);
    return n < PATH_MAX && name_ok(tenant) && build_hash_ok(hash)
               ? 0
               : err_set(err, ERR_INVALID, "files: 64 hex digits are needed");
}

uint64_t build_upload_most(struct app *app)
{
    return app_config(app)->build_upload;
}

bool build_files_have(struct app *app, const char *tenant, const char *hash)
{
    char path[PATH_MAX];
    struct err ignored;

    return path_of(app, tenant, "", hash, path, &ignored) == 0 && access(path, R_OK) == 0;
}

bool build_files_own(struct app *app, const char *tenant, const char *build, const char *hash)
{
    char path[PATH_MAX];
    struct err ignored;

    return path_of(app, tenant, build, hash, path, &ignored) == 0 && access(path, R_OK) == 0;
}

int build_files_open(struct app *app, const char *tenant, const char *hash, int *ret_fd,
                     struct err *err)
{
    char path[PATH_MAX];

    if (path_of(app, tenant, "", hash, path, err) < 0)
        return -1;
    *ret_fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd < 0)
        return err_set(err, ERR_NO_PATH, "archive: there are no files of that name");
    (void) futimens(*ret_fd, NULL); /* used now */
    return 0;
}

static int too_many(uint64_t most, struct err *err)
{
    return err_set(err, ERR_TOO_MANY,
                   "files for builds: %llu MiB are there, as many as a tenant may have "
                   "(build_uploads)",
                   (unsigned long long) most >> 20);
}

/* What the host keeps free for sandboxes and the store is not for uploads. */
static int check_disk(struct app *app, struct err *err)
{
    struct quota_host host = { .disk_total = 0 };
    struct statvfs disk;

    if (statvfs(app_config(app)->state, &disk) == 0) {
        host.disk_total = (uint64_t) disk.f_blocks * disk.f_frsize;
        host.disk_free = (uint64_t) disk.f_bavail * disk.f_frsize;
    }
    return quota_host_check(&host, err);
}

static int begin(struct app *app, const char *tenant, const char *build, const char *hash,
                 struct build_upload *ret, struct err *err)
{
    char folder[PATH_MAX];
    struct uploads all;
    uint64_t used, one = build_upload_most(app), most = app_config(app)->build_uploads;

    *ret = (struct build_upload){ .fd = -1, .app = app, .tenant = tenant };
    if (path_of(app, tenant, build, hash, ret->path, err) < 0 ||
        quota_store_more(app, tenant, 1, err) < 0)
        return -1;
    uploads_folder(app, folder);
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make the folder of uploads");
    all = uploads_sweep(app, tenant);
    used = all.bytes + all.parts;
    if (check_disk(app, err) < 0)
        return -1;
    if (used >= most)
        return too_many(most, err);
    if (all.count >= BUILD_FILES_COUNT && access(ret->path, F_OK) < 0)
        return err_set(err, ERR_TOO_MANY,
                       "files for builds: there are %d uploads, as many as a tenant may have",
                       BUILD_FILES_COUNT);
    ret->room = most - used < one ? most - used : one;
    if (snprintf(ret->temporary, sizeof ret->temporary, "%s/%s+" UPLOADS_PART "XXXXXX", folder,
                 tenant) >= (int) sizeof ret->temporary)
        return err_set(err, ERR_INTERNAL, "the state directory's name is too long");
    ret->fd = mkostemp(ret->temporary, O_CLOEXEC);
    return ret->fd < 0 ? err_sys(err, errno, "make a file for an upload") : 0;
}

int build_upload_begin(struct app *app, const char *tenant, const char *hash,
                       struct build_upload *ret, struct err *err)
{
    return begin(app, tenant, "", hash, ret, err);
}

/* Uploads at the same time see one another. */
static int look(struct build_upload *upload, uint64_t bytes, struct err *err)
{
    uint64_t most = app_config(upload->app)->build_uploads;
    struct uploads all;

    if (bytes / QUOTA_LOOK == upload->bytes / QUOTA_LOOK)
        return 0;
    if (quota_upload_more(upload->app, upload->tenant, bytes - upload->counted, err) < 0)
        return -1;
    upload->counted = bytes;
    if (bytes / ALL_LOOK == upload->bytes / ALL_LOOK)
        return 0;
    if (check_disk(upload->app, err) < 0)
        return -1;
    all = uploads_sweep(upload->app, upload->tenant);
    return all.bytes + all.parts < most ? 0 : too_many(most, err);
}

int build_upload_take(struct build_upload *upload, const void *data, size_t len, struct err *err)
{
    if (len > upload->room - upload->bytes)
        return err_set(err, ERR_TOO_BIG,
                       "files: more than %llu MiB, which is what this server takes (build_upload, "
                       "build_uploads)",
                       (unsigned long long) upload->room >> 20);
    if (look(upload, upload->bytes + len, err) < 0)
        return -1;
    upload->bytes += len;
    if (io_write_all(upload->fd, data, len) == 0)
        return 0;
    return errno == ENOSPC ? err_set(err, ERR_DISK_FULL, "no room for an upload on the server")
                           : err_sys(err, errno, "write an upload");
}

int build_upload_end(struct build_upload *upload, bool keep, struct err *err)
{
    int r = 0;

    if (upload->fd < 0)
        return 0;
    if (keep && rename(upload->temporary, upload->path) < 0)
        r = err_sys(err, errno, "keep an upload");
    if (!keep || r < 0)
        (void) unlink(upload->temporary);
    quota_upload_end(upload->app, upload->tenant, upload->counted,
                     keep && r == 0 ? upload->bytes : 0);
    (void) close(take_fd(&upload->fd));
    return r;
}

/* ---- out of the sandbox ---- */

static int take_archive(void *arg, const void *data, size_t len, bool end, struct err *err)
{
    (void) end;
    return build_upload_take(arg, data, len, err);
}

int build_files_pack(struct ops *ops, const char *build, const char *hash, build_files_fill *fill,
                     void *arg, struct err *err)
{
    auto_free struct build_upload *upload = malloc(sizeof *upload);
    auto_free struct tar_out *out = NULL;
    struct err ignored;
    int r;

    if (!upload)
        return err_set(err, ERR_NO_MEMORY, "no memory to pack files");
    if (begin(ops->app, ops->caller->tenant, build, hash, upload, err) < 0)
        return -1;
    out = ops_tar_out_new(take_archive, upload, err);
    r = out && fill(arg, out, err) == 0 ? ops_tar_out_end(out, err) : -1;
    return r < 0 ? (build_upload_end(upload, false, &ignored), -1)
                 : build_upload_end(upload, true, err);
}

int build_files_add(struct ops *ops, const struct ops_file *file, struct tar_out *out,
                    const char *dir_prefix, const char *file_prefix, struct err *err)
{
    auto_free struct file_info *info = calloc(1, sizeof *info);
    struct stream stream;
    bool single;
    int r;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory to pack files");
    if (ops_file_pack(ops, file, 0, &stream, info, err) < 0)
        return -1;
    single = info->type == ENTRY_FILE;
    r = ops_tar_out_add(out, ops, file, single, single ? file_prefix : dir_prefix, &stream, err);
    stream_close(&stream);
    return r;
}

/* ---- into the sandbox ---- */

struct unpack {
    struct gunzip *gunzip; /* NULL: it is no gzip */
    struct ops_tar tar;
    char in[PIECE], out[PIECE];
};

static int take_piece(struct unpack *u, size_t len, struct err *err)
{
    size_t at = 0, used, made;

    if (!u->gunzip)
        return ops_tar_take(&u->tar, u->in, len, err);
    do {
        if (gunzip_read(u->gunzip, u->in + at, len - at, &used, u->out, sizeof u->out, &made, err) <
                0 ||
            (made > 0 && ops_tar_take(&u->tar, u->out, made, err) < 0))
            return -1;
        at += used;
    } while (at < len || made > 0);
    return 0;
}

static int unpack_all(struct unpack *u, int fd, struct err *err)
{
    ssize_t n;

    for (bool first = true; (n = read(fd, u->in, sizeof u->in)) > 0; first = false) {
        if (first && n >= 2 && (unsigned char) u->in[0] == 0x1f &&
            (unsigned char) u->in[1] == 0x8b && !(u->gunzip = gunzip_new(err)))
            return -1;
        if (take_piece(u, (size_t) n, err) < 0)
            return -1;
    }
    if (n < 0)
        return err_sys(err, errno, "read an upload");
    return u->gunzip ? gunzip_end(u->gunzip, err) : 0;
}

int build_files_unpack(struct ops *ops, const char *build, const char *hash, ops_tar_pick *pick,
                       void *arg, struct err *err)
{
    auto_free struct unpack *u = calloc(1, sizeof *u);
    uint64_t entries, bytes;
    char from[PATH_MAX];
    auto_close int fd = -1;
    int r;

    if (!u)
        return err_set(err, ERR_NO_MEMORY, "no memory to unpack files");
    if (path_of(ops->app, ops->caller->tenant, build, hash, from, err) < 0)
        return -1;
    fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_set(err, ERR_NO_PATH,
                       "the files of this step were not uploaded, or are gone: upload them again");
    (void) futimens(fd, NULL); /* it is kept a day from its last use */
    u->tar.ops = ops;
    u->tar.pick = pick;
    u->tar.pick_arg = arg;
    r = unpack_all(u, fd, err);
    r = ops_tar_end(&u->tar, r, &entries, &bytes, err);
    gunzip_free(u->gunzip);
    return r;
}
