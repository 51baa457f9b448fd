#include "agent/worker/worker.h"

#include "agent/worker/answer.h"
#include "agent/worker/file.h"
#include "agent/worker/glob.h"
#include "agent/worker/grep.h"
#include "agent/worker/move.h"
#include "agent/worker/owner.h"
#include "agent/worker/pack.h"
#include "agent/worker/port.h"
#include "agent/worker/subtree.h"
#include "agent/worker/watch.h"
#include "agent/worker/xattr.h"
#include "base/own.h"

/* Each sends its whole answer and returns 0, or returns -1 and why; the answer's last frame is then
 * that error. */
static const struct {
    int (*run)(struct worker *, struct err *);
} ops[AGENT_OP_COUNT] = {
    /* clang-format off */
    [AGENT_STAT]         = { file_stat },
    [AGENT_LIST]         = { subtree_list },
    [AGENT_READ]         = { file_read },
    [AGENT_WRITE]        = { file_write },
    [AGENT_MKDIR]        = { file_mkdir },
    [AGENT_MOVE]         = { move_run },
    [AGENT_REMOVE]       = { subtree_remove },
    [AGENT_CHMOD]        = { subtree_chmod },
    [AGENT_CHOWN]        = { subtree_chown },
    [AGENT_XATTR_GET]    = { xattr_get },
    [AGENT_XATTR_SET]    = { xattr_set },
    [AGENT_XATTR_LIST]   = { xattr_list },
    [AGENT_XATTR_REMOVE] = { xattr_remove },
    [AGENT_WATCH]        = { watch_run },
    [AGENT_GLOB]         = { glob_run },
    [AGENT_GREP]         = { grep_run },
    [AGENT_PORTS]        = { port_list },
    [AGENT_DIAL]         = { port_dial },
    [AGENT_PACK]         = { pack_run },
    [AGENT_UNPACK]       = { unpack_run },
    [AGENT_OWNER]        = { owner_run },
    /* clang-format on */
};

int worker_main(struct worker *w)
{
    uint32_t op = w->request->op;
    struct err err = { .kind = ERR_NONE };

    if (op >= ARRAY_LEN(ops) || !ops[op].run)
        (void) err_set(&err, ERR_UNSUPPORTED, "no such file operation: %u", op);
    else if (ops[op].run(w, &err) == 0)
        return 0;
    answer_error(w, &err);
    if ((op == AGENT_WRITE || op == AGENT_UNPACK) && err.kind != ERR_UNAVAILABLE)
        answer_drain(w);
    return 1;
}
