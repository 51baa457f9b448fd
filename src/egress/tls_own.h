/* tls_own.h - what the two files of tls.h share. */
#ifndef COVE_EGRESS_TLS_OWN_H
#define COVE_EGRESS_TLS_OWN_H

#include "egress/tls.h"

#include <openssl/ssl.h>

/* Borrowed from the authority. NULL: no memory. */
SSL_CTX *tls_ca_context(struct tls_ca *ca, const char *name);
/* What all of them have. */
void tls_context_common(SSL_CTX *context);

#endif
