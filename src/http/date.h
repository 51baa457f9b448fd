/* date.h - dates of HTTP: "Sun, 06 Nov 1994 08:49:37 GMT", whatever the locale. */
#ifndef COVE_HTTP_DATE_H
#define COVE_HTTP_DATE_H

#include "http/slice.h"

#define DATE_SIZE 30 /* with its NUL */

/* Seconds since 1970; years outside 1970 to 9999 are brought to the nearer end. */
void date_put(char out[DATE_SIZE], int64_t seconds);

/* Only the form above, which every client of this century sends. The name of the day is not
 * compared with the date. */
bool date_parse(struct slice text, int64_t *ret_seconds);

#endif
