/* envd.h - the handlers of envd, the server that E2B has at port 49983 of every sandbox, for the table in envd.c.
 *
 * Every exchange here has the params "sandbox" and "template", and a caller who owns it (e2b_target_caller). */
#ifndef COVE_SURFACE_E2B_ENVD_H
#define COVE_SURFACE_E2B_ENVD_H

#include "server/serve/route.h"
#include "surface/e2b/files.h"

/* Before all: what a browser of another origin needs. */
int envd_greet(struct exchange *x, struct err *err);

route_handler envd_health, envd_metrics, envd_envs;

/* Contents of files. */
route_handler envd_download, envd_upload, envd_compose;

/* The user of the query, or of Basic authorization; and that path. */
int envd_file(struct exchange *x, const char *path, struct ops_file *ret, struct err *err);
/* A failed operation on that file in envd's words and with its status. Returns -1. */
int envd_fail(struct exchange *x, const struct ops_file *file, struct err *err);

/* filesystem.Filesystem */
route_handler filesystem_stat, filesystem_make_dir, filesystem_move, filesystem_remove,
    filesystem_list_dir, filesystem_watch_dir, filesystem_create_watcher,
    filesystem_get_watcher_events, filesystem_remove_watcher;

route_handler process_start, process_connect, process_list, process_send_input,
    process_stream_input, process_close_stdin, process_update, process_send_signal;

#endif
