/* session_end.h - how a session ended, in words and as an exit code. */
#ifndef COVE_TESTS_DIRECT_SESSION_END_H
#define COVE_TESTS_DIRECT_SESSION_END_H

#include "direct/session.h"

enum session_how {
    SESSION_GOES_ON,
    SESSION_ENDED,     /* the command did: `result` */
    SESSION_LOST,      /* the connection ended without a status: `err` */
    SESSION_FAILED,    /* on this side: `err` */
    SESSION_SIGNALLED, /* cove gave up because of `signal` */
    SESSION_DETACHED,  /* likewise, and the command continues */
    SESSION_TIMED_OUT, /* the agent should have ended it, and did not */
};

struct session_end {
    enum session_how how;
    struct exec_result result;
    struct err err;
    int signal;
    uint64_t missed; /* bytes of output that nobody saw */
};

/* Opens the link again if it was closed. */
int session_relink(struct session *session, struct err *err);

/* Says what is to be said, with the terminal in order again, and returns the exit code. */
int session_report(struct session *session, struct session_end *end);

#endif
