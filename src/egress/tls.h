/* tls.h - TLS that the gateway ends itself: a certificate authority for one sandbox, and the two ends of a connection.
 *
 * An end knows no socket: bytes of the network are put in and taken out, so that one thread can serve many and decide how
 * much each may hold. Apart from the rest of the gateway, since OpenSSL has an ERR_STATE of its own.
 *
 * Owns:    OpenSSL's objects behind these structs.
 * Callers: open.c, secrets.c; server/net/secrets.c for tls_ca_make. One thread at a time for one object.
 * Never:   lets the key of an authority out, but by tls_ca_make. Speaks less than TLS 1.2, renegotiates, or resumes. */
#ifndef COVE_EGRESS_TLS_H
#define COVE_EGRESS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TLS_LEAVES 16 /* certificates of hosts that an authority keeps */

struct tls_ca;
struct tls_trust;
struct tls_end;

/* A new authority, as PEM; both the caller's to free, the key to be wiped. */
bool tls_ca_make(char **ret_cert, char **ret_key);
/* NULL: not readable, or no memory. */
struct tls_ca *tls_ca_new(const char *cert, const char *key);
void tls_ca_free(struct tls_ca *ca);

/* Whose word counts about servers: this host's authorities, and those of a PEM text (NULL: none). NULL: with why. */
struct tls_trust *tls_trust_new(const char *pem, char *why, size_t size);
void tls_trust_free(struct tls_trust *trust);

/* Towards the sandbox, as that host; towards the host, which has to prove its name. NULL: no memory. */
struct tls_end *tls_end_server(struct tls_ca *ca, const char *name);
struct tls_end *tls_end_client(struct tls_trust *trust, const char *name);
void tls_end_free(struct tls_end *end);

/* What came from the network; false: no memory. */
bool tls_end_put(struct tls_end *end, const uint8_t *data, size_t len);
/* Put in, and not yet understood. */
size_t tls_end_waiting(const struct tls_end *end);
/* What is to go to the network; then say how much of it went. */
size_t tls_end_out(const struct tls_end *end, const uint8_t **ret);
void tls_end_sent(struct tls_end *end, size_t len);

/* 1: hands are shaken. 0: the other side has to say more. -1: it failed, and why has a few words. */
int tls_end_shake(struct tls_end *end, char *why, size_t size);
enum { TLS_MORE = -1, TLS_BROKEN = -2 };
/* > 0: bytes. 0: the other side has ended properly. TLS_MORE, TLS_BROKEN. */
ssize_t tls_end_read(struct tls_end *end, uint8_t *out, size_t size);
bool tls_end_write(struct tls_end *end, const uint8_t *data, size_t len);
/* Says that nothing more comes. */
void tls_end_close(struct tls_end *end);

#endif
