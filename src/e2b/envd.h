/* envd.h - the handlers of envd, the server that E2B has at port 49983 of every sandbox, for the table in envd.c.
 *
 * Every exchange here has the param "sandbox", and a caller who owns it (e2b_target_caller). */
#ifndef COVE_E2B_ENVD_H
#define COVE_E2B_ENVD_H

#include "api/route.h"
#include "e2b/e2b.h"

route_handler envd_health;

route_handler process_start, process_connect, process_list, process_send_input,
    process_stream_input, process_close_stdin, process_update, process_send_signal;

#endif
