/* multipart.h - multipart/form-data (RFC 7578), as it arrives: uploads of files.
 *
 * Owns:    the struct, of fixed size. Data is handed out as slices, of the input or (where a
 *          boundary seemed to begin and did not) of the struct itself; valid until the next call.
 * Callers: routes that take forms.
 * Never:   trusts a file name: it is what the client wrote, slashes and all, only checked to be
 *          UTF-8 without control characters. How large a part may be is the caller's to say. */
#ifndef COVE_HTTP_MULTIPART_H
#define COVE_HTTP_MULTIPART_H

#include "base/err.h"
#include "http/slice.h"

#define MULTIPART_BOUNDARY_MAX 70   /* RFC 2046 */
#define MULTIPART_HEAD_MAX     8192 /* bytes of one part's headers: a path of 4095 fits */
#define MULTIPART_FIELDS_MAX   16   /* of one part */
#define MULTIPART_PARTS_MAX    16384
#define MULTIPART_EPILOGUE_MAX 1024 /* bytes behind the last boundary, which are dropped */

enum multipart_event {
    MULTIPART_MORE, /* all was used */
    MULTIPART_PART, /* a part begins: name, filename and type are in the struct */
    MULTIPART_DATA, /* a piece of it, not empty */
    MULTIPART_END,  /* it is complete */
    MULTIPART_LAST, /* the last boundary came; what follows is dropped */
};

enum multipart_state {
    MULTIPART_START,  /* before the first boundary, where nothing may stand but one CRLF */
    MULTIPART_BODY,   /* data, or as much of a delimiter as `matched` says */
    MULTIPART_BEHIND, /* the two bytes behind a delimiter: CRLF or "--" */
    MULTIPART_HEADERS,
    MULTIPART_EPILOGUE,
};

struct multipart {
    /* Of the part that began last. */
    char name[256];
    char filename[4096]; /* filename* where given */
    char type[128];      /* "" if the part does not say */
    bool has_filename;

    /* multipart.c's own. */
    enum multipart_state state;
    char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* CRLF -- boundary */
    uint8_t delimiter_len, matched;
    char behind; /* the first of the two bytes behind a delimiter; 0: not there yet */
    uint16_t parts, epilogue, head_len, line;
    uint8_t fields;
    char head[MULTIPART_HEAD_MAX];
};

/* From the Content-Type of the request. -1 when it is not multipart/form-data (ERR_UNSUPPORTED), or
 * without a boundary that can be (ERR_INVALID). */
int multipart_init(struct multipart *multipart, struct slice content_type, struct err *err);

/* Reads on: an enum multipart_event, or -1. */
int multipart_read(struct multipart *multipart, const char *in, size_t len, size_t *ret_used,
                   struct slice *ret_data, struct err *err);

/* Whether the body may end here: the last boundary has come. */
static inline bool multipart_done(const struct multipart *multipart)
{
    return multipart->state == MULTIPART_EPILOGUE;
}

#endif
