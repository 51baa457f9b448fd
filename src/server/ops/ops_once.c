/* A sandbox for one command. Three operations that exist already, in a row: it is made (from the pool where one fits), files
 * are written, a command runs; and its removal does not keep the answer waiting. Should this server die in between, the
 * sandbox has a deadline, like every other. */
#include "server/guard/audit.h"
#include "server/life/crew.h"
#include "server/life/sleep.h"
#include "server/net/network.h"
#include "server/ops/ops_own.h"

#include "base/log.h"

#include <stdatomic.h>
#include <stdio.h>

/* How long it may live beyond its command: files before and after it. */
#define AROUND_MS 60000

static int write_file(struct ops *ops, const char *sandbox, const char *user,
                      const struct ops_once_file *file, struct err *err)
{
    struct ops_file at = { .sandbox = sandbox, .user = user, .path = file->path };
    struct file_info info;
    struct stream stream;
    int r;

    if (ops_file_write(ops, &at, file->mode, AGENT_PARENTS, &stream, err) < 0)
        return -1;
    r = file->len > 0 ? files_write_next(&stream, file->data, file->len, err) : 0;
    if (r == 0)
        r = ops_file_write_end(ops, &at, &stream, &info, err);
    stream_close(&stream);
    return r;
}

int ops_once_begin(struct ops *ops, const struct ops_once *once, char ret_sandbox[ID_LEN + 1],
                   struct err *err)
{
    struct ops_create create = once->create;
    struct ops_sandbox made;

    create.timeout_ms = once->timeout_ms + AROUND_MS;
    create.on_timeout = ON_TIMEOUT_KILL;
    create.once = true;
    if (ops_sandbox_create(ops, &create, &made, err) < 0)
        return -1;
    (void) snprintf(ret_sandbox, ID_LEN + 1, "%s", made.id);
    for (size_t i = 0; i < once->file_count; i++)
        if (write_file(ops, made.id, once->user, &once->files[i], err) < 0) {
            struct err why = *err;

            ops_once_end(ops, made.id);
            *err = why;
            return err_wrap(err, "files: %.200s", once->files[i].path);
        }
    return 0;
}

static void note_end(struct app *app, const char *tenant, const char *sandbox)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct err ignored;

    facts.detail = "its command ended";
    audit_system(app, tenant, "sandbox.kill", sandbox, &facts);
    atomic_fetch_add(&app->metrics.killed, 1);
    network_ended(app, sandbox);
    (void) store_sandbox_remove(app->store, sandbox, &ignored);
}

/* What fails here is tried again at the sandbox's deadline. */
static void end(struct app *app, const struct crew_task *task)
{
    struct err err;

    if (sleep_end(app, task->id, SLEEP_AT_ONCE, &err) == 0)
        note_end(app, task->tenant, task->id);
    else
        log_line(LOG_WARNING, "sandbox=%s is not removed before its deadline: %s", task->id,
                 err.msg);
}

void ops_once_end(struct ops *ops, const char *sandbox)
{
    struct crew_task task = { .kind = CREW_END, .run = end };

    (void) snprintf(task.id, sizeof task.id, "%s", sandbox);
    (void) snprintf(task.tenant, sizeof task.tenant, "%s", ops->caller->tenant);
    if (!crew_add(&task)) /* too many wait: the caller that makes so many helps to remove them */
        end(ops->app, &task);
}
