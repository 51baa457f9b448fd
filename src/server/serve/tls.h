/* tls.h - OpenSSL behind a few functions. Its headers and base/err.h share names (ERR_…), so that no file can
 * include both: errors here are an errno, or a text. */
#ifndef COVE_SERVER_SERVE_TLS_H
#define COVE_SERVER_SERVE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls_context;
struct tls;

/* What the library would load at its first use: the providers that the host's settings name. */
void tls_load(void);

/* NULL, with a sentence in why. TLS 1.2 at least. */
struct tls_context *tls_context_new(const char *cert_path, const char *key_path, char *why,
                                    size_t size);
void tls_context_free(struct tls_context *context);

struct tls *tls_new(struct tls_context *context, int fd);
void tls_free(struct tls *tls);

/* Count, 0 at the end, -1 with errno; EAGAIN: wait for *ret_events (POLLIN or POLLOUT). */
ssize_t tls_recv(struct tls *tls, void *out, size_t size, short *ret_events);
ssize_t tls_send(struct tls *tls, const void *data, size_t len, short *ret_events);
/* Says that nothing more will be sent; reading continues. */
void tls_end(struct tls *tls);
/* Decrypted bytes are waiting that no poll will tell of. */
bool tls_pending(const struct tls *tls);

#endif
