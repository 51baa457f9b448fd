/* The authority of a sandbox, and the certificates that it gives. All hosts share one key, made when the first is needed:
 * what a certificate costs is one signature. */
#include "egress/tls.h"
#include "egress/tls_own.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CA_DAYS    3650
#define LEAF_DAYS  90
#define RENEW_DAYS 30
#define DAY        86400

struct leaf {
    char name[256];
    time_t made;
    SSL_CTX *context;
};

struct tls_ca {
    X509 *cert;
    EVP_PKEY *key, *leaf_key;
    size_t next;
    struct leaf leaves[TLS_LEAVES];
};

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509_EXTENSION *extension;
    X509V3_CTX context;
    bool fine;

    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&context);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    fine = extension && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return fine;
}

static bool random_serial(X509 *cert)
{
    unsigned char bytes[16];
    BIGNUM *number = NULL;
    bool fine;

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] &= 0x7f;
    number = BN_bin2bn(bytes, sizeof bytes, NULL);
    fine = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return fine;
}

/* A day of the past: clocks differ. */
static X509 *blank(EVP_PKEY *key, const char *common, long days)
{
    X509 *cert = X509_new();
    X509_NAME *name = cert ? X509_get_subject_name(cert) : NULL;

    if (cert && X509_set_version(cert, 2) == 1 && random_serial(cert) &&
        X509_gmtime_adj(X509_getm_notBefore(cert), -DAY) &&
        X509_gmtime_adj(X509_getm_notAfter(cert), days * DAY) && X509_set_pubkey(cert, key) == 1 &&
        X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *) "cove", -1, -1,
                                   0) == 1 &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *) common, -1, -1,
                                   0) == 1)
        return cert;
    X509_free(cert);
    return NULL;
}

/* ---- the authority ---- */

static char *pem_of(X509 *cert, EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL, *data;
    long len;

    if (bio && (cert ? PEM_write_bio_X509(bio, cert)
                     : PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL)) == 1) {
        len = BIO_get_mem_data(bio, &data);
        text = malloc((size_t) len + 1);
        if (text) {
            memcpy(text, data, (size_t) len);
            text[len] = '\0';
        }
        OPENSSL_cleanse(data, (size_t) len);
    }
    BIO_free(bio);
    return text;
}

bool tls_ca_make(char **ret_cert, char **ret_key)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key ? blank(key, "authority of one sandbox", CA_DAYS) : NULL;
    bool fine = cert && X509_set_issuer_name(cert, X509_get_subject_name(cert)) == 1 &&
                add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                add_extension(cert, cert, NID_subject_key_identifier, "hash") &&
                X509_sign(cert, key, EVP_sha256()) > 0;

    if (fine) {
        *ret_cert = pem_of(cert, NULL);
        *ret_key = pem_of(NULL, key);
        fine = *ret_cert && *ret_key;
        if (!fine) {
            free(*ret_cert);
            free(*ret_key);
        }
    }
    X509_free(cert);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return fine;
}

struct tls_ca *tls_ca_new(const char *cert, const char *key)
{
    struct tls_ca *ca = calloc(1, sizeof *ca);
    BIO *cert_bio = BIO_new_mem_buf(cert, -1), *key_bio = BIO_new_mem_buf(key, -1);

    if (ca && cert_bio && key_bio) {
        ca->cert = PEM_read_bio_X509(cert_bio, NULL, NULL, NULL);
        ca->key = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);
        ca->leaf_key = EVP_EC_gen("P-256");
    }
    BIO_free(cert_bio);
    BIO_free(key_bio);
    ERR_clear_error();
    if (ca && ca->cert && ca->key && ca->leaf_key)
        return ca;
    tls_ca_free(ca);
    return NULL;
}

void tls_ca_free(struct tls_ca *ca)
{
    if (!ca)
        return;
    for (size_t i = 0; i < TLS_LEAVES; i++)
        SSL_CTX_free(ca->leaves[i].context);
    X509_free(ca->cert);
    EVP_PKEY_free(ca->key);
    EVP_PKEY_free(ca->leaf_key);
    free(ca);
}

/* ---- certificates of hosts ---- */

static X509 *mint(struct tls_ca *ca, const char *name)
{
    X509 *cert = blank(ca->leaf_key, strlen(name) < 64 ? name : "host", LEAF_DAYS);
    char alternative[300];

    (void) snprintf(alternative, sizeof alternative, "DNS:%s", name);
    if (cert && X509_set_issuer_name(cert, X509_get_subject_name(ca->cert)) == 1 &&
        add_extension(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") &&
        add_extension(cert, ca->cert, NID_key_usage, "critical,digitalSignature") &&
        add_extension(cert, ca->cert, NID_ext_key_usage, "serverAuth") &&
        add_extension(cert, ca->cert, NID_subject_alt_name, alternative) &&
        add_extension(cert, ca->cert, NID_subject_key_identifier, "hash") &&
        add_extension(cert, ca->cert, NID_authority_key_identifier, "keyid:always") &&
        X509_sign(cert, ca->key, EVP_sha256()) > 0)
        return cert;
    X509_free(cert);
    return NULL;
}

/* HTTP/1.1 is all that can be read here; who offers only others is told nothing, and may try it. */
static int choose(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                  const unsigned char *in, unsigned in_len, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;

    (void) ssl;
    (void) arg;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

void tls_context_common(SSL_CTX *context)
{
    (void) SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    (void) SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                            SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    (void) SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    (void) SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

static SSL_CTX *context_for(struct tls_ca *ca, const char *name)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    X509 *cert = context ? mint(ca, name) : NULL;
    bool fine = cert && SSL_CTX_use_certificate(context, cert) == 1 &&
                SSL_CTX_use_PrivateKey(context, ca->leaf_key) == 1;

    X509_free(cert);
    if (!fine) {
        SSL_CTX_free(context);
        return NULL;
    }
    tls_context_common(context);
    (void) SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_alpn_select_cb(context, choose, NULL);
    return context;
}

SSL_CTX *tls_ca_context(struct tls_ca *ca, const char *name)
{
    time_t now = time(NULL);
    struct leaf *leaf = NULL;

    for (size_t i = 0; i < TLS_LEAVES && !leaf; i++)
        if (ca->leaves[i].context && strcmp(ca->leaves[i].name, name) == 0)
            leaf = &ca->leaves[i];
    if (leaf && now - leaf->made < RENEW_DAYS * DAY)
        return leaf->context;
    if (!leaf)
        leaf = &ca->leaves[ca->next++ % TLS_LEAVES];
    SSL_CTX_free(leaf->context); /* connections that use it hold it themselves */
    leaf->context = context_for(ca, name);
    leaf->made = now;
    (void) snprintf(leaf->name, sizeof leaf->name, "%s", name);
    return leaf->context;
}
