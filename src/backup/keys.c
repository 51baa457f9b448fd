#include "backup/keys.h"

#include "backup/kdf.h"
#include "base/io.h"
#include "base/own.h"
#include "store/gcm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define IMAGE_KEY   "image.key"
#define SECRETS_KEY "secrets.key"
#define COST        17 /* 128 MiB, some 0.3 s */
#define COST_MOST   18 /* an unchecked manifest cannot ask for more */
#define SALT_LEN    16
#define PLAIN_LEN   (2 * KEYS_LEN + 1)
#define BOX_LEN     (GCM_NONCE_LEN + PLAIN_LEN + GCM_TAG_LEN)
#define ABOUT       "cove backup keys 1"

void keys_wipe(struct keys *keys)
{
    explicit_bzero(keys, sizeof *keys);
}

/* ---- files ---- */

/* 1: read, 0: there is none. */
static int read_key(int dir_fd, const char *path, unsigned char ret[KEYS_LEN], struct err *err)
{
    auto_close int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return err_sys(err, errno, "open %s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != KEYS_LEN ||
        io_read_all(fd, ret, KEYS_LEN) < 0)
        return err_set(err, ERR_UNAVAILABLE, "%s is not whole", path);
    return 1;
}

int keys_read(int dir_fd, struct keys *ret, struct err *err)
{
    static const char *const places[] = { "server/" SECRETS_KEY, SECRETS_KEY };
    int r = read_key(dir_fd, IMAGE_KEY, ret->image, err);

    if (r == 0)
        return err_set(err, ERR_NO_PATH, "there is no " IMAGE_KEY);
    ret->has_secrets = false;
    memset(ret->secrets, 0, sizeof ret->secrets);
    for (size_t i = 0; r > 0 && i < ARRAY_LEN(places) && !ret->has_secrets; i++) {
        r = read_key(dir_fd, places[i], ret->secrets, err);
        ret->has_secrets = r > 0;
        r = r < 0 ? r : 1;
    }
    return r < 0 ? -1 : 0;
}

static int write_key(int dir_fd, const char *path, const unsigned char key[KEYS_LEN], uint32_t uid,
                     uint32_t gid, struct err *err)
{
    auto_close int fd =
        openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0 || io_write_all(fd, key, KEYS_LEN) < 0 || fchown(fd, uid, gid) < 0 || fsync(fd) < 0)
        return err_sys(err, errno, "write %s", path);
    return 0;
}

int keys_write(const struct keys *keys, int dir_fd, uint32_t uid, uint32_t gid, struct err *err)
{
    if (write_key(dir_fd, IMAGE_KEY, keys->image, 0, 0, err) < 0)
        return -1;
    return keys->has_secrets
               ? write_key(dir_fd, "server/" SECRETS_KEY, keys->secrets, uid, gid, err)
               : 0;
}

int passphrase_read(const char *path, char ret[PASSPHRASE_MAX], struct err *err)
{
    if (io_read_text(AT_FDCWD, path, ret, PASSPHRASE_MAX) < 0)
        return err_sys(err, errno, "read the passphrase in %s", path);
    ret[strcspn(ret, "\r\n")] = '\0';
    if (strlen(ret) < 8)
        return err_set(err, ERR_INVALID, "the passphrase in %s is shorter than 8 characters", path);
    return 0;
}

/* ---- names and codes ---- */

static void about_of(const struct keys *keys, const char *about, unsigned char ret[SHA256_LEN])
{
    sha256_hmac(keys->image, sizeof keys->image, about, strlen(about), ret);
}

void keys_name(const struct keys *keys, char ret[BACKUP_KEYS_HEX])
{
    unsigned char both[2 * SHA256_LEN], name[SHA256_LEN];

    about_of(keys, "cove backup name 1", both);
    sha256_hmac(keys->secrets, sizeof keys->secrets, "cove backup name 1", 18, both + SHA256_LEN);
    sha256_of(both, sizeof both, name);
    sha256_hex(name, 16, ret);
}

void keys_sign(const struct keys *keys, unsigned char ret[SHA256_LEN])
{
    about_of(keys, "cove backup manifest 1", ret);
}

/* ---- under a passphrase ---- */

static bool from_hex(const char *text, unsigned char *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(text) != 2 * count || sscanf(text + 2 * i, "%2hhx", &out[i]) != 1)
            return false;
    return true;
}

static struct gcm parts(const unsigned char *key, unsigned char box[BOX_LEN])
{
    return (struct gcm){ .key = key,
                         .nonce = box,
                         .about = ABOUT,
                         .text = box + GCM_NONCE_LEN,
                         .len = PLAIN_LEN,
                         .tag = box + GCM_NONCE_LEN + PLAIN_LEN };
}

int keys_seal(const struct keys *keys, const char *passphrase, struct backup_manifest *manifest,
              struct err *err)
{
    unsigned char salt[SALT_LEN], box[BOX_LEN], key[32], *plain = box + GCM_NONCE_LEN;
    struct gcm gcm = parts(key, box);
    bool fine;

    memcpy(plain, keys->image, KEYS_LEN);
    memcpy(plain + KEYS_LEN, keys->secrets, KEYS_LEN);
    plain[2 * KEYS_LEN] = keys->has_secrets;
    fine = getrandom(salt, sizeof salt, 0) == sizeof salt &&
           getrandom(box, GCM_NONCE_LEN, 0) == GCM_NONCE_LEN &&
           kdf_scrypt(passphrase, salt, sizeof salt, COST, key) && gcm_seal(&gcm);
    explicit_bzero(key, sizeof key);
    if (!fine) {
        explicit_bzero(box, sizeof box);
        return err_set(err, ERR_INTERNAL, "the keys cannot be sealed");
    }
    manifest->sealed_cost = COST;
    sha256_hex(salt, sizeof salt, manifest->sealed_salt);
    sha256_hex(box, sizeof box, manifest->sealed_box);
    return 0;
}

int keys_open(const struct backup_manifest *manifest, const char *passphrase, struct keys *ret,
              struct err *err)
{
    unsigned char salt[SALT_LEN], box[BOX_LEN], key[32], *plain = box + GCM_NONCE_LEN;
    struct gcm gcm = parts(key, box);
    bool fine;

    if (manifest->sealed_cost < 1 || manifest->sealed_cost > COST_MOST ||
        !from_hex(manifest->sealed_salt, salt, sizeof salt) ||
        !from_hex(manifest->sealed_box, box, sizeof box))
        return err_set(err, ERR_INVALID, "the backup's sealed keys are invalid");
    fine = kdf_scrypt(passphrase, salt, sizeof salt, (unsigned) manifest->sealed_cost, key) &&
           gcm_open(&gcm);
    if (fine) {
        memcpy(ret->image, plain, KEYS_LEN);
        memcpy(ret->secrets, plain + KEYS_LEN, KEYS_LEN);
        ret->has_secrets = plain[2 * KEYS_LEN];
    }
    explicit_bzero(key, sizeof key);
    explicit_bzero(box, sizeof box);
    return fine ? 0 : err_set(err, ERR_DENIED, "the passphrase does not open this backup's keys");
}
