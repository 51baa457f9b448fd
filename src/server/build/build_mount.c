/* Mounts of RUN. A sandbox cannot mount, so what a mount would hide is put aside while the command runs, and is put back
 * before the files are kept: a secret, a cache and what was written to a tmpfs are in no template.
 *
 * A cache is an archive among the tenant's files for builds, under a name made of its id: each RUN has a copy of its own, and
 * the last one that succeeds leaves it for the next. */
#include "server/build/build_own.h"

#include "base/base64.h"
#include "base/own.h"

#include <string.h>

/* Where secrets are while the command runs; the targets are links, so that a command which removes one removes no more than that. What
 * is removed from a disk is still in the blocks of its image, which is the template's: zeros are written over a secret first, past
 * the page cache, because an overlay need not heed fsync. */
#define SECRET_PATH "/.cove-secret-"
#define SECRETS_MAX 16
#define SECRET_MAX  (512u * 1024)

static const char *text_of(const json_t *mount, const char *name)
{
    return json_string_value(json_object_get(mount, name));
}

static bool is(const json_t *mount, const char *type)
{
    return strcmp(text_of(mount, "type"), type) == 0;
}

/* ---- what a request says ---- */

static bool path_ok(const char *path)
{
    const char *at = path;

    if (path[0] != '/' || !path[1] || strlen(path) >= PATH_MAX)
        return false;
    while ((at = strstr(at, "/..")))
        if (!at[3] || at[3] == '/')
            return false;
        else
            at += 3;
    return true;
}

static bool number_ok(const char *text)
{
    size_t len = strspn(text, "0123456789");

    return len > 0 && len < 6 && !text[len];
}

const char *mount_check(const json_t *mount, const json_t *secrets)
{
    const char *type = text_of(mount, "type"), *target = text_of(mount, "target");
    const char *id = text_of(mount, "id"), *env = text_of(mount, "env");
    struct err ignored;
    uint32_t bits;

    if (!type ||
        (strcmp(type, "secret") != 0 && strcmp(type, "cache") != 0 && strcmp(type, "tmpfs") != 0))
        return "mounts: type: secret, cache or tmpfs is needed";
    if (target ? !path_ok(target) : strcmp(type, "secret") != 0 || !env)
        return "mounts: target: an absolute path without '..' is needed";
    if (strcmp(type, "tmpfs") != 0 && (!id || !id[0] || strlen(id) > 4096))
        return "mounts: id: a text is needed";
    if (strcmp(type, "secret") == 0 && !json_object_get(secrets, id))
        return "mounts: id: not among the secrets of the build";
    if (env && (strcmp(type, "secret") != 0 || !variable_ok(env)))
        return "mounts: env: a variable's name is needed";
    if (text_of(mount, "mode") && parse_mode(text_of(mount, "mode"), &bits, &ignored) < 0)
        return "mounts: mode: an octal number is needed";
    if ((text_of(mount, "uid") && !number_ok(text_of(mount, "uid"))) ||
        (text_of(mount, "gid") && !number_ok(text_of(mount, "gid"))))
        return "mounts: uid and gid: numbers are needed";
    return NULL;
}

const char *secrets_check(const json_t *secrets)
{
    const char *name;
    json_t *value;

    if (json_object_size(secrets) > SECRETS_MAX)
        return "at most 16";
    json_object_foreach((json_t *) secrets, name, value)
    {
        size_t len = json_string_length(value);
        auto_free uint8_t *data = malloc(len + 1);

        if (!json_is_string(value) || !data || base64_get(json_string_value(value), len, data) < 0)
            return "values are base64";
        if (len / 4 * 3 > SECRET_MAX + 2)
            return "a value is longer than 512 KiB";
    }
    return NULL;
}

/* ---- aside and back ---- */

/* $1: a number, $2: the target, $3: dir or file, $4: mode, $5: owner or "". A file is a link to SECRET_PATH$1, made after this. */
static const char enter_script[] =
    "set -e\n"
    "a=/.cove-aside/$1 t=$2\n"
    "mkdir -p \"$a\"\n"
    "if [ \"$3\" = file ]; then\n"
    "  if [ -e \"$t\" ] || [ -L \"$t\" ]; then mv \"$t\" \"$a/file\"; fi\n"
    "  d=$(dirname \"$t\"); [ -d \"$d\" ] || mkdir -p \"$d\"\n"
    "  rm -rf " SECRET_PATH "\"$1\"; ln -s " SECRET_PATH "\"$1\" \"$t\"\n"
    "  exit 0\n"
    "fi\n"
    "if [ -d \"$t\" ]; then\n"
    "  stat -c %u:%g \"$t\" >\"$a.owner\"\n"
    "  for f in \"$t\"/* \"$t\"/.[!.]* \"$t\"/..?*; do\n"
    "    if [ -e \"$f\" ] || [ -L \"$f\" ]; then mv \"$f\" \"$a/\"; fi; done\n"
    "else mkdir -p \"$t\"; chmod \"$4\" \"$t\"; : >\"$a.made\"; fi\n"
    "if [ -n \"$5\" ]; then chown \"$5\" \"$t\"; fi\n";

static const char leave_script[] =
    "set -e\n"
    "a=/.cove-aside/$1 t=$2\n"
    "if [ \"$3\" = file ]; then\n"
    "  s=" SECRET_PATH "$1\n"
    "  if [ -s \"$s\" ] && [ ! -L \"$s\" ]; then\n"
    "    n=$((($(wc -c <\"$s\") + 65535) / 65536)) z='if=/dev/zero bs=65536 conv=notrunc'\n"
    "    dd $z of=\"$s\" count=$n oflag=direct 2>/dev/null ||\n"
    "      { dd $z of=\"$s\" count=$n 2>/dev/null; sync; }\n"
    "  fi\n"
    "  rm -rf \"$t\" \"$s\"\n"
    "  if [ -e \"$a/file\" ] || [ -L \"$a/file\" ]; then mv \"$a/file\" \"$t\"; fi\n"
    "else\n"
    "  for f in \"$t\"/* \"$t\"/.[!.]* \"$t\"/..?*; do\n"
    "    if [ -e \"$f\" ] || [ -L \"$f\" ]; then rm -rf \"$f\"; fi; done\n"
    "  if [ -e \"$a.made\" ]; then rmdir \"$t\"\n"
    "  else\n"
    "    for f in \"$a\"/* \"$a\"/.[!.]* \"$a\"/..?*; do\n"
    "      if [ -e \"$f\" ] || [ -L \"$f\" ]; then mv \"$f\" \"$t/\"; fi; done\n"
    "    chown \"$(cat \"$a.owner\")\" \"$t\"\n"
    "  fi\n"
    "fi\n"
    "rm -rf \"$a\" \"$a.made\" \"$a.owner\"\n"
    "rmdir /.cove-aside 2>/dev/null || true\n";

static void owner_of(const json_t *mount, char *out, size_t size)
{
    const char *uid = text_of(mount, "uid"), *gid = text_of(mount, "gid");

    out[0] = '\0';
    if (uid || gid)
        (void) snprintf(out, size, "%s:%s", uid ? uid : "0", gid ? gid : "0");
}

static int put_aside(struct run *run, const json_t *mount, size_t number, bool back,
                     struct err *err)
{
    const char *mode = text_of(mount, "mode");
    char owner[32], name[8];

    (void) snprintf(name, sizeof name, "%zu", number);
    owner_of(mount, owner, sizeof owner);
    return run_script(run, back ? leave_script : enter_script,
                      (const char *const[]){ name, text_of(mount, "target"),
                                             is(mount, "secret") ? "file" : "dir",
                                             mode                 ? mode
                                             : is(mount, "tmpfs") ? "1777"
                                                                  : "755",
                                             owner },
                      5, "RUN --mount", err);
}

/* ---- secrets ---- */

static int write_secret(struct run *run, const json_t *mount, size_t number, const uint8_t *data,
                        size_t len, struct err *err)
{
    char path[sizeof SECRET_PATH + 8];
    struct ops_file file = { .sandbox = job_record(run->job)->sandbox,
                             .user = "root",
                             .path = path };
    const char *mode = text_of(mount, "mode");
    uint32_t bits = 0400;
    struct file_info info;
    struct stream stream;
    char owner[32];
    int r;

    (void) snprintf(path, sizeof path, SECRET_PATH "%zu", number);
    if (mode && parse_mode(mode, &bits, err) < 0)
        return -1;
    if (ops_file_write(&run->ops, &file, bits, 0, &stream, err) < 0)
        return -1;
    r = len > 0 ? files_write_next(&stream, data, (uint32_t) len, err) : 0;
    if (r == 0)
        r = ops_file_write_end(&run->ops, &file, &stream, &info, err);
    stream_close(&stream);
    owner_of(mount, owner, sizeof owner);
    if (r < 0)
        return -1;
    return run_script(run, "chmod \"$3\" \"$1\"; if [ -n \"$2\" ]; then chown \"$2\" \"$1\"; fi",
                      (const char *const[]){ file.path, owner, mode ? mode : "400" }, 3,
                      "RUN --mount", err);
}

static int give_secret(struct run *run, const json_t *mount, size_t number, json_t *env,
                       struct err *err)
{
    const json_t *value = json_object_get(job_spec(run->job)->secrets, text_of(mount, "id"));
    size_t len = json_string_length(value);
    auto_free uint8_t *data = malloc(len + 1);
    const char *name = text_of(mount, "env");
    ssize_t n = data ? base64_get(json_string_value(value), len, data) : -1;
    int r = 0;

    if (n < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for a secret");
    if (name && json_object_set_new(env, name, json_stringn((const char *) data, (size_t) n)) < 0)
        r = err_set(err, ERR_INVALID, "the secret for %.60s is not a text", name);
    if (name && r == 0 && memchr(data, '\0', (size_t) n))
        r = err_set(err, ERR_INVALID, "the secret for %.60s has a NUL in it", name);
    if (r == 0 && text_of(mount, "target"))
        r = write_secret(run, mount, number, data, (size_t) n, err);
    explicit_bzero(data, len + 1);
    return r;
}

/* ---- caches ---- */

/* Where the cache of one mount is. */
struct filling {
    struct ops_file file;
    char owner[160];
};

static int pick_all(struct ops_tar *in, struct err *err)
{
    struct filling *f = in->pick_arg;

    return !in->open && ops_tar_open(in, &f->file, AGENT_PARENTS, err) < 0 ? -1 : 1;
}

static int fill_cache(struct run *run, const json_t *mount, struct err *err)
{
    struct filling f = { .file = { .sandbox = job_record(run->job)->sandbox,
                                   .user = "root",
                                   .path = text_of(mount, "target") } };
    char key[KEY_MAX], owner[32];

    mount_key(run->ops.caller->tenant, text_of(mount, "id"), key);
    if (!build_files_have(job_app(run->job), run->ops.caller->tenant, key))
        return 0;
    owner_of(mount, owner, sizeof owner);
    owner_split(owner, f.owner, &f.file);
    return build_files_unpack(&run->ops, "", key, pick_all, &f, err);
}

struct keeping {
    struct run *run;
    struct ops_file file;
};

static int pack_cache(void *arg, struct tar_out *out, struct err *err)
{
    struct keeping *k = arg;

    return build_files_add(&k->run->ops, &k->file, out, "", "", err);
}

/* A cache that has no room is as good as an empty one. */
static void keep_cache(struct run *run, const json_t *mount)
{
    struct keeping k = { .run = run,
                         .file = { .sandbox = job_record(run->job)->sandbox,
                                   .user = "root",
                                   .path = text_of(mount, "target") } };
    char key[KEY_MAX];
    struct err why;

    mount_key(run->ops.caller->tenant, text_of(mount, "id"), key);
    if (build_files_pack(&run->ops, "", key, pack_cache, &k, &why) < 0)
        job_say(run->job, "warn", run->step, "the cache %.100s is not kept: %.200s",
                text_of(mount, "id"), why.msg);
}

/* ---- both ---- */

int mounts_enter(struct run *run, const struct build_step *step, json_t *env, struct err *err)
{
    json_t *mount;
    size_t i;

    json_array_foreach((json_t *) step->mounts, i, mount)
    {
        if (text_of(mount, "target") && put_aside(run, mount, i, false, err) < 0)
            return -1;
        if (is(mount, "secret") && give_secret(run, mount, i, env, err) < 0)
            return -1;
        if (is(mount, "cache") && fill_cache(run, mount, err) < 0)
            return -1;
    }
    return 0;
}

int mounts_leave(struct run *run, const struct build_step *step, struct err *err)
{
    for (size_t i = json_array_size(step->mounts); i > 0; i--) {
        const json_t *mount = json_array_get(step->mounts, i - 1);

        if (is(mount, "cache"))
            keep_cache(run, mount);
        if (text_of(mount, "target") && put_aside(run, mount, i - 1, true, err) < 0)
            return -1;
    }
    return 0;
}
