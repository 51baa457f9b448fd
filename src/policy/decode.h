/* decode.h - the encodings that commands hide in. Pure. Outputs are never longer than inputs. */
#ifndef COVE_POLICY_DECODE_H
#define COVE_POLICY_DECODE_H

#include <stddef.h>
#include <sys/types.h>

/* Blanks are skipped and what follows '=' is ignored; the URL alphabet counts too. -1: not base64.
 * out may be in. */
ssize_t decode_base64(const char *in, size_t len, char *out);

/* "726d", also with blanks, "0x", "\x" and ':' between. -1: not hexadecimal. */
ssize_t decode_hex(const char *in, size_t len, char *out);

/* \n \t \\ \' \x41 \101 \u0041 \e \cX, as $'...', echo -e and printf have them. NULs are left out,
 * and what is no escape stays. */
size_t decode_escapes(const char *in, size_t len, char *out);

#endif
