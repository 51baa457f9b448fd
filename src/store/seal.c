#include "store/seal.h"

#include "base/base64.h"
#include "base/io.h"
#include "base/own.h"
#include "store/gcm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define KEY_FILE  "secrets.key"
#define NEW_FILE  "secrets.key.new"
#define TEXT_MOST (1 << 24)

/* ---- the key ---- */

static int read_key(int dir, unsigned char ret[SEAL_KEY_LEN], struct err *err)
{
    auto_close int fd = openat(dir, KEY_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return err_sys(err, errno, "open " KEY_FILE);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != SEAL_KEY_LEN)
        return err_set(err, ERR_UNAVAILABLE, KEY_FILE " is not whole: restore it from a copy");
    if (io_read_all(fd, ret, SEAL_KEY_LEN) < 0)
        return err_sys(err, errno, "read " KEY_FILE);
    return 0;
}

/* Written whole under another name first: two programs that start at once agree on one key, and a crash leaves none. */
static int make_key(int dir, struct err *err)
{
    unsigned char key[SEAL_KEY_LEN];
    auto_close int fd = -1;
    char name[64];
    struct stat st;
    int r = -1;

    (void) snprintf(name, sizeof name, NEW_FILE ".%d", (int) getpid());
    (void) unlinkat(dir, name, 0);
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, errno, "make " KEY_FILE);
    if (getrandom(key, sizeof key, 0) != sizeof key || io_write_all(fd, key, sizeof key) < 0 ||
        fsync(fd) < 0 || fstat(dir, &st) < 0)
        err_sys(err, errno, "write " KEY_FILE);
    else if (geteuid() == 0 && st.st_uid != 0 && fchown(fd, st.st_uid, st.st_gid) < 0)
        err_sys(err, errno, "hand over " KEY_FILE);
    else if (linkat(dir, name, dir, KEY_FILE, 0) < 0 && errno != EEXIST)
        err_sys(err, errno, "make " KEY_FILE);
    else
        r = fsync(dir) < 0 ? err_sys(err, errno, "make " KEY_FILE) : 0;
    (void) unlinkat(dir, name, 0);
    explicit_bzero(key, sizeof key);
    return r;
}

int seal_key(const char *db_path, unsigned char ret[SEAL_KEY_LEN], struct err *err)
{
    auto_free char *path = strdup(db_path);
    char *slash = path ? strrchr(path, '/') : NULL;
    auto_close int dir = -1;

    if (!slash)
        return err_set(err, ERR_NO_MEMORY, "no memory for a name");
    *slash = '\0';
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(err, errno, "open %s", path);
    if (faccessat(dir, KEY_FILE, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && make_key(dir, err) < 0)
        return -1;
    return read_key(dir, ret, err);
}

/* ---- texts ---- */

void seal_wipe(char *text, size_t len)
{
    if (text)
        explicit_bzero(text, len);
    free(text);
}

static int no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "no memory for a secret");
}

/* `data` is nonce, text, tag. */
static struct gcm parts(const unsigned char *key, const char *about, uint8_t *data, size_t len)
{
    return (struct gcm){ .key = key,
                         .nonce = data,
                         .about = about,
                         .text = data + GCM_NONCE_LEN,
                         .len = len,
                         .tag = data + GCM_NONCE_LEN + len };
}

int seal_close(const unsigned char key[SEAL_KEY_LEN], const char *about, const char *text,
               size_t len, char **ret, struct err *err)
{
    size_t all = GCM_NONCE_LEN + len + GCM_TAG_LEN;
    uint8_t *data = len < TEXT_MOST ? malloc(all) : NULL;
    char *out = len < TEXT_MOST ? malloc(BASE64_SIZE(all)) : NULL;
    struct gcm gcm;
    int r = -1;

    if (!data || !out) {
        (void) no_memory(err);
        goto end;
    }
    gcm = parts(key, about, data, len);
    memcpy(gcm.text, text, len);
    if (getrandom(data, GCM_NONCE_LEN, 0) != GCM_NONCE_LEN || !gcm_seal(&gcm)) {
        err_set(err, ERR_INTERNAL, "a secret cannot be sealed");
        goto end;
    }
    base64_put(out, data, all);
    *ret = take_ptr(&out);
    r = 0;
end:
    free(out);
    seal_wipe((char *) data, data ? all : 0);
    return r;
}

int seal_open(const unsigned char key[SEAL_KEY_LEN], const char *about, const char *sealed,
              char **ret, size_t *ret_len, struct err *err)
{
    size_t sealed_len = strlen(sealed), room = sealed_len / 4 * 3;
    uint8_t *data = malloc(room + 1);
    ssize_t all = data ? base64_get(sealed, sealed_len, data) : -1;
    struct gcm gcm;

    if (!data)
        return no_memory(err);
    if (all >= GCM_NONCE_LEN + GCM_TAG_LEN) {
        gcm = parts(key, about, data, (size_t) all - GCM_NONCE_LEN - GCM_TAG_LEN);
        if (gcm_open(&gcm)) {
            memmove(data, gcm.text, gcm.len);
            data[gcm.len] = '\0';
            *ret = (char *) data;
            *ret_len = gcm.len;
            return 0;
        }
    }
    seal_wipe((char *) data, room);
    return err_set(err, ERR_UNAVAILABLE, "a secret cannot be opened: " KEY_FILE " is another");
}
