/* session_end.h - how a session ended, in words and as an exit code. */
#ifndef COVE_CLI_API_SESSION_END_H
#define COVE_CLI_API_SESSION_END_H

#include "cli/api/session.h"

enum session_how {
    SESSION_GOES_ON,
    SESSION_ENDED,     /* the command did: `result` */
    SESSION_REFUSED,   /* no command was started: `err` */
    SESSION_LOST,      /* the connection ended without a status: `err` */
    SESSION_FAILED,    /* on this side: `err` */
    SESSION_SIGNALLED, /* cove gave up because of `signal` */
    SESSION_DETACHED,  /* likewise, and the command continues */
    SESSION_TIMED_OUT, /* the agent should have ended it, and did not */
};

struct session_end {
    enum session_how how;
    json_t *result;
    struct err err;
    int signal;
    uint64_t missed; /* bytes of output that were not shown */
};

/* Says what is to be said, with the terminal in order again, and returns the exit code. */
int session_report(struct session *session, struct session_end *end);

/* Says why a command was not started. As shells have it: 127, there is no such program; 126, it cannot be executed. */
int session_not_started(const struct err *err);

#endif
