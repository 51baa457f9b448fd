/* port_host.h - names of the form {port}-{id}.…, which stand for a port of a sandbox. Pure. */
#ifndef COVE_SERVER_SERVE_PORT_HOST_H
#define COVE_SERVER_SERVE_PORT_HOST_H

#include "base/parse.h"
#include "http/slice.h"

/* Decimal, 1 to 65535, without signs or blanks. */
bool port_parse(struct slice text, uint16_t *ret);
/* By the first label of a host name, without the name's own port. Letters may have any case. */
bool port_host_parse(struct slice host, char ret_id[ID_LEN + 1], uint16_t *ret_port);

#endif
