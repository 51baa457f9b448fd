/* media.h - the media type of a file, by its name or its first bytes. */
#ifndef COVE_HTTP_MEDIA_H
#define COVE_HTTP_MEDIA_H

#include "http/slice.h"

/* "text/html; charset=utf-8" of "a/b/index.HTML"; "application/octet-stream" where nothing is
 * known. Never NULL. */
const char *media_type(struct slice filename);

/* Of a file whose name says nothing, by its first bytes (512 are enough): a few known beginnings, else text if no byte
 * speaks against it. */
const char *media_sniff(const void *data, size_t len);

#endif
