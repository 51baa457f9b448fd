/* ops.h - the keeper's whole surface: connections and the table of requests. */
#ifndef COVE_KEEPER_OPS_H
#define COVE_KEEPER_OPS_H

#include "keeper/keeper.h"

/* The listening socket <state>/keeper.sock; gid -1: root only, else that group too. */
int ops_listen(struct keeper *keeper, int gid, struct err *err);

/* What sandbox.c has to tell those who wait. */
void ops_sandbox_started(struct keeper *keeper, const struct sandbox *sandbox);
void ops_sandbox_gone(struct keeper *keeper, const struct sandbox *sandbox);

/* The disk maker did what a request about a volume waits for, or not: why->kind says. False: none waits for that order. */
bool ops_order_done(struct keeper *keeper, uint32_t order, const struct err *why);
/* It never will. */
void ops_orders_lost(struct keeper *keeper, const struct err *why);

/* Answers freezes that are done or too late. Returns ms until the next look, 0: as soon as makes sense, -1: no caller waits. */
int ops_tick(struct keeper *keeper);

/* A save has ended, the sandbox continuing: with an image, or why not. */
void ops_saved(struct keeper *keeper, const struct sandbox *sandbox,
               const struct keeper_image *image, const struct err *err);
/* Memory went to swap, so many bytes; or why not. */
void ops_reclaimed(struct keeper *keeper, const struct sandbox *sandbox, uint64_t bytes,
                   const struct err *err);
/* An image was compressed, or not. */
void ops_shrunk(struct keeper *keeper, const char *id, const struct keeper_image *image,
                const struct err *err);

#endif
