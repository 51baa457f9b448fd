#include "cli/records.h"

#include "base/admin_socket.h"
#include "base/io.h"
#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/report.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 3000
#define AGAIN_MS    20

int records_server(struct err *err)
{
    auto_close int fd = -1;

    if (admin_connect(report_state(), &fd, err) < 0)
        return -1;
    server_use_here();
    return 0;
}

/* ---- the server is down ---- */

/* 0 and *ret NULL: there is no store. */
static int open_store(struct store **ret, struct err *err)
{
    char path[4096];

    *ret = NULL;
    (void) snprintf(path, sizeof path, "%s/server/cove.db", report_state());
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (store_open(report_state(), ret, err) == 0)
        return 0;
    return err->kind == ERR_STATE
               ? err_set(err, ERR_STATE, "coved runs on %s, but does not answer at its socket",
                         report_state())
               : -1;
}

static int audit(struct store *store, const char *action, const char *detail, struct err *err)
{
    char user[32];
    struct audit_record record = { .tenant = STORE_LOCAL_TENANT,
                                   .user_id = user,
                                   .action = action,
                                   .outcome = "ok",
                                   .detail = detail,
                                   .resource_usage = "{}",
                                   .security_events = "[]",
                                   .duration_ms = -1,
                                   .exit_code = AUDIT_NO_EXIT };

    (void) snprintf(user, sizeof user, "cli/%u", (unsigned) getuid());
    return store_audit_append(store, &record, STORE_ON_DISK, err);
}

/* The image itself is dropped by the next who looks: the server, or gc. */
static int cool(struct store *store, const char *name, bool *ret_was, struct err *err)
{
    struct store_warm warm;
    int r = store_warm_get(store, name, &warm, err);

    *ret_was = r == 1;
    return r == 1 ? store_warm_remove(store, name, err) : r;
}

/* 1: the server runs, and is to be asked. 0: *ret is the store, or NULL. Another verb has the lock for a moment, and a server that
 * starts has it before its socket is there. */
static int reach(struct store **ret, struct err *err)
{
    uint64_t until = io_now_ms() + PATIENCE_MS;

    for (;;) {
        *ret = NULL;
        if (records_server(err) == 0)
            return 1;
        if (err->kind != ERR_UNAVAILABLE)
            return -1;
        if (open_store(ret, err) == 0)
            return 0;
        if (err->kind != ERR_STATE || io_now_ms() >= until)
            return -1;
        (void) poll(NULL, 0, AGAIN_MS);
    }
}

/* ---- templates ---- */

static int cooled(json_t *answer, bool *ret)
{
    *ret = json_is_true(json_object_get(answer, "cooled"));
    json_decref(answer);
    return 0;
}

int records_made(const char *name, const char *how, const char *from, bool *ret_cooled,
                 struct err *err)
{
    auto_store struct store *store = NULL;
    char action[64], detail[400];
    json_t *answer = NULL;
    int r = reach(&store, err);

    *ret_cooled = false;
    if (r == 1)
        return server_ask("PUT", json_pack("{s:s, s:s*}", "how", how, "from", from), &answer, err,
                          "/v1/host/templates/%s", name) < 0
                   ? -1
                   : cooled(answer, ret_cooled);
    if (r < 0 || !store)
        return r;
    (void) snprintf(action, sizeof action, "template.%s", how);
    (void) snprintf(detail, sizeof detail, "%.63s%s%.300s", name, from ? " from " : "",
                    from ? from : "");
    return cool(store, name, ret_cooled, err) < 0 ? -1 : audit(store, action, detail, err);
}

int records_gone(const char *name, bool *ret_cooled, struct err *err)
{
    auto_store struct store *store = NULL;
    json_t *answer = NULL;
    int r = reach(&store, err);

    *ret_cooled = false;
    if (r == 1)
        return server_ask("DELETE", NULL, &answer, err, "/v1/host/templates/%s", name) < 0
                   ? -1
                   : cooled(answer, ret_cooled);
    if (r < 0 || !store)
        return r;
    return cool(store, name, ret_cooled, err) < 0 ||
                   store_network_default_set(store, STORE_NETWORK_TEMPLATE, name, NULL, NULL, err) <
                       0
               ? -1
               : audit(store, "template.rm", name, err);
}

int records_templates(json_t **ret, struct err *err)
{
    json_t *answer = NULL;

    if (records_server(err) < 0 || server_ask("GET", NULL, &answer, err, "/v1/host/templates") < 0)
        return -1;
    *ret = json_incref(json_object_get(answer, "templates"));
    json_decref(answer);
    return json_is_array(*ret)
               ? 0
               : err_set(err, ERR_PROTOCOL, "the server's answer has no list of templates");
}

json_t *records_find(json_t *templates, const char *name)
{
    json_t *template;
    size_t i;

    json_array_foreach(templates, i, template) if (strcmp(show_text(template, "name"), name) ==
                                                   0) return template;
    return NULL;
}

/* ---- the copy ---- */

int records_copy(int state_fd, int *ret_fd, struct err *err)
{
    auto_store struct store *store = NULL;
    auto_close int fd = -1;
    int r = reach(&store, err);

    *ret_fd = -1;
    if (r < 0 || (r == 0 && !store))
        return r;
    if (r == 1 ? server_ask("POST", NULL, NULL, err, "/v1/host/copy") < 0
               : store_copy(store, err) < 0 || audit(store, "store.copy", "", err) < 0)
        return -1;
    fd = openat(state_fd, "server/" STORE_COPY, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || unlinkat(state_fd, "server/" STORE_COPY, 0) < 0)
        return err_sys(err, errno, "open the store's copy");
    *ret_fd = take_fd(&fd);
    return 0;
}
