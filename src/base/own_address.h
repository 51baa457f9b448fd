/* own_address.h - whether an address is one of this host: the kernel's word, now. */
#ifndef COVE_BASE_OWN_ADDRESS_H
#define COVE_BASE_OWN_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* An IPv4 address is ::ffff:a.b.c.d here. What cannot be found out counts as one. */
bool own_address(const uint8_t address[16]);

#endif
