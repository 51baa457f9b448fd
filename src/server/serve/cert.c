#include "server/serve/cert.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CA_DAYS    3650
#define CERT_DAYS  820 /* what browsers still take of an authority of one's own */
#define GOOD_DAYS  30
#define DOMAIN_MAX 200

struct pair {
    X509 *cert;
    EVP_PKEY *key;
};

static void pair_done(struct pair *pair)
{
    X509_free(pair->cert);
    EVP_PKEY_free(pair->key);
}

__attribute__((format(printf, 3, 4))) static int fail(char *why, size_t size, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void) vsnprintf(why, size, fmt, args);
    va_end(args);
    ERR_clear_error();
    return -1;
}

/* ---- making ---- */

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    int ok;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ok = extension && X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
    return ok;
}

struct wish {
    const char *name; /* of the subject */
    int days;
    struct {
        int nid;
        const char *value;
    } extensions[6];
};

/* Signed by `by`, or by itself. */
static int make(struct pair *pair, const struct wish *wish, const struct pair *by)
{
    unsigned char serial[16];
    X509_NAME *subject;
    BIGNUM *number = NULL;
    int ok;

    pair->key = EVP_EC_gen("P-256");
    pair->cert = X509_new();
    if (!pair->key || !pair->cert || RAND_bytes(serial, sizeof serial) != 1)
        return 0;
    serial[0] = (serial[0] & 0x7f) | 0x40; /* positive, and of full length */
    number = BN_bin2bn(serial, sizeof serial, NULL);
    subject = X509_get_subject_name(pair->cert);
    ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(pair->cert)) &&
         X509_set_version(pair->cert, 2) &&
         X509_gmtime_adj(X509_getm_notBefore(pair->cert), -86400) &&
         X509_gmtime_adj(X509_getm_notAfter(pair->cert), 86400L * wish->days) &&
         X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC, (const unsigned char *) "cove", -1,
                                    -1, 0) &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *) wish->name,
                                    -1, -1, 0) &&
         X509_set_issuer_name(pair->cert, X509_get_subject_name(by ? by->cert : pair->cert)) &&
         X509_set_pubkey(pair->cert, pair->key);
    for (size_t i = 0; ok && i < 6 && wish->extensions[i].value; i++)
        ok = add_extension(pair->cert, by ? by->cert : pair->cert, wish->extensions[i].nid,
                           wish->extensions[i].value);
    BN_free(number);
    return ok && X509_sign(pair->cert, by ? by->key : pair->key, EVP_sha256()) > 0;
}

static int make_both(const char *domain, struct pair *ca, struct pair *own)
{
    char limits[512 + DOMAIN_MAX], names[512 + 2 * DOMAIN_MAX];
    struct wish authority = { .name = "cove development CA",
                              .days = CA_DAYS,
                              .extensions = {
                                  { NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
                                  { NID_key_usage, "critical,keyCertSign,cRLSign" },
                                  { NID_name_constraints, limits },
                                  { NID_subject_key_identifier, "hash" },
                              } };
    struct wish server = { .name = "cove",
                           .days = CERT_DAYS,
                           .extensions = {
                               { NID_basic_constraints, "critical,CA:FALSE" },
                               { NID_key_usage, "critical,digitalSignature" },
                               { NID_ext_key_usage, "serverAuth" },
                               { NID_subject_alt_name, names },
                               { NID_subject_key_identifier, "hash" },
                               { NID_authority_key_identifier, "keyid" },
                           } };

    (void) snprintf(limits, sizeof limits,
                    "critical,permitted;DNS:%s,permitted;DNS:localhost,"
                    "permitted;IP:127.0.0.0/255.0.0.0,"
                    "permitted;IP:::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                    domain);
    (void) snprintf(names, sizeof names,
                    "DNS:%s,DNS:*.%s,DNS:localhost,IP:127.0.0.1,IP:0:0:0:0:0:0:0:1", domain,
                    domain);
    return make(ca, &authority, NULL) && make(own, &server, ca);
}

/* ---- files ---- */

/* Never a file with a key in it that others can read, and never half a file under its name. */
static FILE *begin_file(int dir, mode_t mode)
{
    int fd;

    (void) unlinkat(dir, "new.tmp", 0);
    fd = openat(dir, "new.tmp", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    return fd < 0 ? NULL : fdopen(fd, "w");
}

static int end_file(int dir, FILE *file, const char *name, int ok)
{
    ok = fflush(file) == 0 && fsync(fileno(file)) == 0 && ok;
    ok = fclose(file) == 0 && ok;
    return ok && renameat(dir, "new.tmp", dir, name) == 0;
}

static int write_key(int dir, const char *name, EVP_PKEY *key)
{
    FILE *file = begin_file(dir, 0600);

    return file && end_file(dir, file, name,
                            PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1);
}

static int write_certs(int dir, const char *name, X509 *first, X509 *second)
{
    FILE *file = begin_file(dir, 0644);

    return file && end_file(dir, file, name,
                            PEM_write_X509(file, first) == 1 &&
                                (!second || PEM_write_X509(file, second) == 1));
}

static X509 *read_cert(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    X509 *cert = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;

    if (file)
        (void) fclose(file);
    ERR_clear_error();
    return cert;
}

/* For a host below the domain, by what is there, a month from now. */
static int is_good(int dir, const char *domain)
{
    X509 *cert = read_cert(dir, "cert.pem"), *ca = read_cert(dir, "ca.pem");
    char host[DOMAIN_MAX + 8];
    time_t then = time(NULL) + 86400L * GOOD_DAYS;
    int good;

    (void) snprintf(host, sizeof host, "1-i.%s", domain);
    good = cert && ca && X509_check_host(cert, host, 0, 0, NULL) == 1 &&
           X509_cmp_time(X509_get0_notAfter(cert), &then) > 0 &&
           X509_verify(cert, X509_get0_pubkey(ca)) == 1 && faccessat(dir, "key.pem", F_OK, 0) == 0;
    X509_free(cert);
    X509_free(ca);
    ERR_clear_error();
    return good;
}

static int is_empty(int dir)
{
    static const char *const files[] = { "ca.pem", "ca.key", "cert.pem", "key.pem" };

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (faccessat(dir, files[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return 0;
    return 1;
}

/* Letters, digits, '-' and '.', with a dot inside: it stands in extensions, and wildcards of one label match nothing. */
static int domain_ok(const char *domain)
{
    size_t len = strlen(domain);

    return len > 2 && len <= DOMAIN_MAX && domain[0] != '.' && domain[0] != '-' &&
           domain[len - 1] != '.' && strchr(domain, '.') && !strstr(domain, "..") &&
           strspn(domain, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") ==
               len;
}

static int make_files(int dir, const char *domain)
{
    struct pair ca = { 0 }, own = { 0 };
    int ok = make_both(domain, &ca, &own) && write_key(dir, "ca.key", ca.key) &&
             write_certs(dir, "ca.pem", ca.cert, NULL) && write_key(dir, "key.pem", own.key) &&
             write_certs(dir, "cert.pem", own.cert, ca.cert);

    pair_done(&ca);
    pair_done(&own);
    return ok;
}

int cert_dev(const char *path, const char *domain, bool force, char *why, size_t size)
{
    int dir, r = 1;

    if (!domain_ok(domain))
        return fail(why, size, "'%.60s' is not a domain for certificates: a dot is needed", domain);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return fail(why, size, "make %s: %s", path, strerror(errno));
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return fail(why, size, "open %s: %s", path, strerror(errno));
    errno = 0;
    if (!force && is_good(dir, domain))
        r = 0;
    else if (!force && !is_empty(dir))
        r = fail(why, size, "%s has other keys or certificates in it; --force replaces them", path);
    else if (!make_files(dir, domain))
        r = fail(why, size, "write to %s: %s", path, errno ? strerror(errno) : "OpenSSL refuses");
    (void) close(dir);
    return r;
}
