/* part.h - the headers of one part of a form: name, file name, type. multipart.c's own. */
#ifndef COVE_HTTP_PART_H
#define COVE_HTTP_PART_H

#include "http/field.h"
#include "http/multipart.h"

void part_begin(struct multipart *multipart);
int part_field(struct multipart *multipart, const struct http_field *field, struct err *err);
/* All headers were there: a name is needed. */
int part_complete(struct multipart *multipart, struct err *err);

#endif
