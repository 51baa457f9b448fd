#include "server/preview/upload.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PIPE_SIZE 262144 /* has room for 64 pieces of packets */

_Static_assert(UPLOAD_PIECE <= FRAME_DATA_MAX, "a piece is one frame");

static int splice_in(struct exchange *x, struct stream *stream, struct err *err)
{
    auto_close int from = -1, to = -1;
    int pair[2];
    ssize_t n;

    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(err, errno, "make a pipe");
    from = pair[0];
    to = pair[1];
    (void) fcntl(to, F_SETPIPE_SZ, PIPE_SIZE); /* or what it has does */
    while ((n = exchange_pipe(x, to, UPLOAD_PIECE, err)) > 0)
        if (files_write_piped(stream, from, (uint32_t) n, err) < 0)
            return -1;
    return (int) n;
}

int upload_body(struct exchange *x, struct stream *stream, struct err *err)
{
    auto_free char *piece = NULL;
    ssize_t n;

    if (exchange_can_pipe(x))
        return splice_in(x, stream, err);
    piece = malloc(UPLOAD_PIECE);
    if (!piece)
        return err_set(err, ERR_NO_MEMORY, "no memory for an upload");
    while ((n = exchange_read(x, piece, UPLOAD_PIECE, err)) > 0) {
        if (files_write_next(stream, piece, (size_t) n, err) < 0)
            return -1;
        if (exchange_can_pipe(x)) /* what was read ahead is through */
            return splice_in(x, stream, err);
    }
    return (int) n;
}
