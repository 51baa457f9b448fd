/* ops_table.h - what the handlers of requests share, in whichever file they are. The table itself is in ops.c. */
#ifndef COVE_KEEPER_OPS_TABLE_H
#define COVE_KEEPER_OPS_TABLE_H

#include "keeper/keeper.h"

#define FREEZE_MS       5000 /* how long a freeze may take */
#define FREEZE_AGAIN_MS 50   /* after which it is begun again */

#define LATER 1 /* a handler's answer: the reply comes when something happened */

typedef int handler(struct keeper *k, int index, const struct keeper_request *request,
                    struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds,
                    struct err *err);

/* ops_image.c */
handler op_save, op_load, op_image, op_images, op_drop, op_compress, op_reclaim;

/* The connection waits for something of that sandbox. */
void ops_wait_for(struct keeper *keeper, int index, uint32_t op, const struct sandbox *sandbox);
bool ops_waits_for(const struct connection *connection, const struct sandbox *sandbox);

void ops_answer(struct keeper *keeper, int index, uint32_t op, struct keeper_reply *reply,
                const int *fds, const struct err *err);
/* The request that waited, with the sandbox as it is now; or why not. */
void ops_answer_pending(struct keeper *keeper, int index, const struct sandbox *sandbox,
                        const struct err *err);
void ops_answer_saved(struct keeper *keeper, int index, const struct keeper_image *image,
                      const struct err *err);

#endif
