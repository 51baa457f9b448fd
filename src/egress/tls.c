#include "egress/tls.h"

#include "egress/tls_own.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The struct tag is only a name for OpenSSL's own object. */
static SSL_CTX *context_of(struct tls_trust *trust)
{
    return (SSL_CTX *) (void *) trust;
}

struct tls_end {
    SSL *ssl;
    BIO *in, *out; /* the SSL's own */
};

/* ---- trust ---- */

/* All certificates of a text; none at all is a mistake. */
static bool add_authorities(SSL_CTX *context, const char *pem)
{
    BIO *text = BIO_new_mem_buf(pem, -1);
    X509 *cert;
    size_t count = 0;

    while (text && (cert = PEM_read_bio_X509(text, NULL, NULL, NULL))) {
        count += (size_t) X509_STORE_add_cert(SSL_CTX_get_cert_store(context), cert);
        X509_free(cert);
    }
    BIO_free(text);
    return count > 0;
}

struct tls_trust *tls_trust_new(const char *pem, char *why, size_t size)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    const char *reason;

    if (context && SSL_CTX_set_default_verify_paths(context) == 1 &&
        (!pem || add_authorities(context, pem))) {
        ERR_clear_error(); /* a text ends with one: nothing more to read */
        tls_context_common(context);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
        return (struct tls_trust *) (void *) context;
    }
    reason = ERR_reason_error_string(ERR_peek_last_error());
    (void) snprintf(why, size, "authorities of servers cannot be read: %s",
                    reason ? reason : "no memory");
    ERR_clear_error();
    SSL_CTX_free(context);
    return NULL;
}

void tls_trust_free(struct tls_trust *trust)
{
    SSL_CTX_free(context_of(trust));
}

/* ---- ends ---- */

static struct tls_end *end_new(SSL_CTX *context)
{
    struct tls_end *end = calloc(1, sizeof *end);

    if (!end || !context || !(end->ssl = SSL_new(context))) {
        free(end);
        return NULL;
    }
    end->in = BIO_new(BIO_s_mem());
    end->out = BIO_new(BIO_s_mem());
    if (!end->in || !end->out) {
        BIO_free(end->in);
        BIO_free(end->out);
        SSL_free(end->ssl);
        free(end);
        return NULL;
    }
    (void) BIO_set_mem_eof_return(end->in, -1); /* empty is not over */
    SSL_set_bio(end->ssl, end->in, end->out);
    return end;
}

struct tls_end *tls_end_server(struct tls_ca *ca, const char *name)
{
    struct tls_end *end = end_new(tls_ca_context(ca, name));

    if (end)
        SSL_set_accept_state(end->ssl);
    ERR_clear_error();
    return end;
}

struct tls_end *tls_end_client(struct tls_trust *trust, const char *name)
{
    static const unsigned char protocols[] = "\x08http/1.1";
    struct tls_end *end = end_new(context_of(trust));

    if (!end)
        return NULL;
    SSL_set_hostflags(end->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set1_host(end->ssl, name) != 1 || SSL_set_tlsext_host_name(end->ssl, name) != 1 ||
        SSL_set_alpn_protos(end->ssl, protocols, sizeof protocols - 1) != 0) {
        tls_end_free(end);
        return NULL;
    }
    SSL_set_connect_state(end->ssl);
    return end;
}

void tls_end_free(struct tls_end *end)
{
    if (!end)
        return;
    SSL_free(end->ssl);
    free(end);
}

/* ---- bytes of the network ---- */

bool tls_end_put(struct tls_end *end, const uint8_t *data, size_t len)
{
    return len == 0 || BIO_write(end->in, data, (int) len) == (int) len;
}

size_t tls_end_waiting(const struct tls_end *end)
{
    return BIO_ctrl_pending(end->in);
}

size_t tls_end_out(const struct tls_end *end, const uint8_t **ret)
{
    char *data = NULL;
    long len = BIO_get_mem_data(end->out, &data);

    *ret = (const uint8_t *) data;
    return len > 0 ? (size_t) len : 0;
}

void tls_end_sent(struct tls_end *end, size_t len)
{
    char dropped[4096];

    while (len > 0) {
        int n = BIO_read(end->out, dropped, (int) (len < sizeof dropped ? len : sizeof dropped));

        if (n <= 0)
            return;
        len -= (size_t) n;
    }
}

/* ---- what is said ---- */

static void explain(const struct tls_end *end, char *why, size_t size)
{
    long verdict = SSL_get_verify_result(end->ssl);
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    if (verdict != X509_V_OK)
        (void) snprintf(why, size, "certificate: %s", X509_verify_cert_error_string(verdict));
    else
        (void) snprintf(why, size, "TLS: %s", reason ? reason : "cut off");
}

int tls_end_shake(struct tls_end *end, char *why, size_t size)
{
    int rc, kind;

    ERR_clear_error();
    rc = SSL_do_handshake(end->ssl);
    if (rc == 1)
        return 1;
    kind = SSL_get_error(end->ssl, rc);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
        return 0;
    explain(end, why, size);
    ERR_clear_error();
    return -1;
}

ssize_t tls_end_read(struct tls_end *end, uint8_t *out, size_t size)
{
    int rc, kind;

    ERR_clear_error();
    rc = SSL_read(end->ssl, out, (int) (size < 65536 ? size : 65536));
    if (rc > 0)
        return rc;
    kind = SSL_get_error(end->ssl, rc);
    ERR_clear_error();
    if (kind == SSL_ERROR_ZERO_RETURN)
        return 0;
    return kind == SSL_ERROR_WANT_READ ? TLS_MORE : TLS_BROKEN;
}

/* A memory of any size takes all of it at once; who calls looks at how much waits there. */
bool tls_end_write(struct tls_end *end, const uint8_t *data, size_t len)
{
    int rc = 1;

    ERR_clear_error();
    while (len > 0 && rc > 0) {
        rc = SSL_write(end->ssl, data, (int) (len < 65536 ? len : 65536));
        if (rc > 0) {
            data += rc;
            len -= (size_t) rc;
        }
    }
    ERR_clear_error();
    return len == 0;
}

void tls_end_close(struct tls_end *end)
{
    ERR_clear_error();
    (void) SSL_shutdown(end->ssl);
    ERR_clear_error();
}
