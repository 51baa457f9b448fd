#include "server/serve/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>

#define PIECE 65536

/* The struct tags are only names for OpenSSL's own objects. */
static SSL_CTX *context_of(struct tls_context *context)
{
    return (SSL_CTX *) (void *) context;
}

static SSL *ssl_of(const struct tls *tls)
{
    return (SSL *) (void *) (size_t) tls;
}

void tls_load(void)
{
    (void) OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, NULL);
}

struct tls_context *tls_context_new(const char *cert_path, const char *key_path, char *why,
                                    size_t size)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    const char *step = "start TLS";

    if (!context)
        goto fail;
    (void) SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    /* A connection without traffic keeps 15 KiB instead of 48. */
    (void) SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                         SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    step = "read the certificate";
    if (SSL_CTX_use_certificate_chain_file(context, cert_path) != 1)
        goto fail;
    step = "read the key";
    if (SSL_CTX_use_PrivateKey_file(context, key_path, SSL_FILETYPE_PEM) != 1)
        goto fail;
    step = "match key and certificate";
    if (SSL_CTX_check_private_key(context) != 1)
        goto fail;
    return (struct tls_context *) (void *) context;

fail:
    (void) snprintf(why, size, "%s: %s", step, ERR_reason_error_string(ERR_peek_last_error()));
    ERR_clear_error();
    SSL_CTX_free(context);
    return NULL;
}

void tls_context_free(struct tls_context *context)
{
    SSL_CTX_free(context_of(context));
}

struct tls *tls_new(struct tls_context *context, int fd)
{
    SSL *ssl = SSL_new(context_of(context));

    if (!ssl || SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_accept_state(ssl);
    return (struct tls *) (void *) ssl;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    (void) SSL_shutdown(ssl_of(tls));
    SSL_free(ssl_of(tls));
}

static ssize_t verdict(struct tls *tls, int rc, short *ret_events)
{
    int why = rc > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_of(tls), rc);

    ERR_clear_error();
    if (why == SSL_ERROR_NONE)
        return rc;
    if (why == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = ECONNRESET;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        *ret_events = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        errno = EAGAIN;
    }
    return -1;
}

ssize_t tls_recv(struct tls *tls, void *out, size_t size, short *ret_events)
{
    return verdict(tls, SSL_read(ssl_of(tls), out, size > PIECE ? PIECE : (int) size), ret_events);
}

ssize_t tls_send(struct tls *tls, const void *data, size_t len, short *ret_events)
{
    return verdict(tls, SSL_write(ssl_of(tls), data, len > PIECE ? PIECE : (int) len), ret_events);
}

void tls_end(struct tls *tls)
{
    (void) SSL_shutdown(ssl_of(tls));
    ERR_clear_error();
}

bool tls_pending(const struct tls *tls)
{
    return SSL_pending(ssl_of(tls)) > 0;
}
