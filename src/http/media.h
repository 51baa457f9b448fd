/* media.h - the media type of a file, by its name. */
#ifndef COVE_HTTP_MEDIA_H
#define COVE_HTTP_MEDIA_H

#include "http/slice.h"

/* "text/html; charset=utf-8" of "a/b/index.HTML"; "application/octet-stream" where nothing is
 * known. Never NULL. */
const char *media_type(struct slice filename);

/* Whether a browser shows it as text: text/..., and JSON, XML and their kind. */
bool media_is_text(const char *type);

#endif
