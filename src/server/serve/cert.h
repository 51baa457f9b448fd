/* cert.h - a certificate authority and a certificate for trying TLS on one machine.
 *
 * The authority can vouch for the domain, localhost and loopback and nothing else (name constraints), so that trusting it does
 * not mean trusting it with everything. As tls.h, this file knows nothing of base/err.h.
 *
 * Callers: coved's main, for `cove cert dev`. */
#ifndef COVE_SERVER_SERVE_CERT_H
#define COVE_SERVER_SERVE_CERT_H

#include <stdbool.h>
#include <stddef.h>

/* In the directory `dir`, which is made if need be: ca.pem, ca.key, cert.pem (with ca.pem behind it) and key.pem; keys are
 * 0600. 1: made. 0: what is there is for this domain and good for a month, and stays. -1 with a sentence: something else is
 * there and force was not said, or it cannot be made. */
int cert_dev(const char *dir, const char *domain, bool force, char *why, size_t size);

#endif
