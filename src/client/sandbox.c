#include "client/sandbox.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define ID_NODE    4
#define ID_RANDOM  (ID_LEN - 1 - ID_NODE)
#define ID_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789"

static uint32_t node_hash;

/* FNV-1a of the machine id: the same on every run, different on every node. */
static void read_node(void)
{
    char text[64];
    uint32_t hash = 2166136261u;

    if (io_read_text(AT_FDCWD, "/etc/machine-id", text, sizeof text) <= 0 &&
        gethostname(text, sizeof text) < 0)
        text[0] = '\0';
    text[sizeof text - 1] = '\0';
    for (const char *c = text; *c && *c != '\n'; c++)
        hash = (hash ^ (unsigned char) *c) * 16777619u;
    node_hash = hash;
}

/* Bytes past the last multiple of 36 are thrown away, so that all letters are equally likely. */
static int random_letters(char *out, size_t count, struct err *err)
{
    const size_t letters = sizeof ID_LETTERS - 1;
    uint8_t pool[64];

    for (size_t n = 0; n < count;) {
        if (getrandom(pool, sizeof pool, 0) != (ssize_t) sizeof pool) {
            if (errno == EINTR)
                continue;
            return err_sys(err, errno, "get random bytes");
        }
        for (size_t i = 0; i < sizeof pool && n < count; i++)
            if (pool[i] < 256 / letters * letters)
                out[n++] = ID_LETTERS[pool[i] % letters];
    }
    return 0;
}

int sandbox_new_id(char out[ID_LEN + 1], struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint32_t node;

    (void) pthread_once(&once, read_node);
    node = node_hash;
    out[0] = 'i';
    for (size_t i = 0; i < ID_NODE; i++) {
        out[1 + i] = ID_LETTERS[node % 36];
        node /= 36;
    }
    out[ID_LEN] = '\0';
    return random_letters(out + 1 + ID_NODE, ID_RANDOM, err);
}

/* Everything that is asked of one sandbox and answered with "done". */
static int ask(struct link *link, enum keeper_op op, const char *sandbox,
               struct keeper_reply *reply, struct err *err)
{
    struct keeper_request request;

    keeper_request_init(&request, op);
    if (link_name(request.sandbox, "sandbox", sandbox, err) < 0)
        return -1;
    return link_call(link, &request, reply, NULL, err);
}

static int fill_create(struct link *link, const struct sandbox_spec *spec,
                       struct keeper_request *request, struct err *err)
{
    const char *template = spec->template;
    struct keeper_hello hello;

    keeper_request_init(request, KEEPER_CREATE);
    request->flags = spec->flags;
    request->isolation = spec->isolation;
    request->limits = spec->limits;
    memcpy(request->volumes, spec->volumes, sizeof request->volumes);
    if (spec->id) {
        if (!id_ok(spec->id))
            return err_set(err, ERR_INVALID, "sandbox: not an id ('i' and 20 of a-z, 0-9)");
        memcpy(request->sandbox, spec->id, ID_LEN);
    } else if (sandbox_new_id(request->sandbox, err) < 0) {
        return -1;
    }
    if (!template) {
        if (keeper_hello(link, &hello, err) < 0)
            return -1;
        if (!hello.default_template[0])
            return err_set(err, ERR_NO_TEMPLATE,
                           "there is no template yet: 'cove up' makes 'host'");
        template = hello.default_template;
    }
    if (link_name(request->template, "template", template, err) < 0)
        return -1;
    if (spec->name && link_name(request->name, "name", spec->name, err) < 0)
        return -1;
    if (spec->name && id_ok(spec->name))
        return err_set(err, ERR_INVALID, "name: '%s' looks like an id", spec->name);
    if (spec->hostname && link_name(request->hostname, "hostname", spec->hostname, err) < 0)
        return -1;
    return 0;
}

int sandbox_create(struct link *link, const struct sandbox_spec *spec, struct keeper_sandbox *ret,
                   struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    if (fill_create(link, spec, &request, err) < 0 ||
        link_call(link, &request, &reply, NULL, err) < 0)
        return -1;
    if (reply.count != 1)
        return err_set(err, ERR_PROTOCOL, "the keeper answered something else");
    *ret = reply.sandbox[0];
    return 0;
}

int sandbox_get(struct link *link, const char *sandbox, struct keeper_sandbox *ret, struct err *err)
{
    struct keeper_reply reply;

    if (ask(link, KEEPER_GET, sandbox, &reply, err) < 0)
        return -1;
    if (reply.count != 1)
        return err_set(err, ERR_PROTOCOL, "the keeper answered something else");
    *ret = reply.sandbox[0];
    return 0;
}

static int ask_stats(struct link *link, const char *sandbox, uint32_t flags,
                     struct keeper_stats *ret, struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    keeper_request_init(&request, KEEPER_STATS);
    request.flags = flags;
    if (link_name(request.sandbox, "sandbox", sandbox, err) < 0 ||
        link_call(link, &request, &reply, NULL, err) < 0)
        return -1;
    *ret = reply.stats;
    return 0;
}

int sandbox_stats(struct link *link, const char *sandbox, struct keeper_stats *ret, struct err *err)
{
    return ask_stats(link, sandbox, 0, ret, err);
}

int sandbox_stats_brief(struct link *link, const char *sandbox, struct keeper_stats *ret,
                        struct err *err)
{
    return ask_stats(link, sandbox, KEEPER_STATS_BRIEF, ret, err);
}

int sandbox_freeze(struct link *link, const char *sandbox, struct err *err)
{
    struct keeper_reply reply;

    return ask(link, KEEPER_FREEZE, sandbox, &reply, err);
}

int sandbox_thaw(struct link *link, const char *sandbox, struct err *err)
{
    struct keeper_reply reply;

    return ask(link, KEEPER_THAW, sandbox, &reply, err);
}

int sandbox_destroy(struct link *link, const char *sandbox, struct err *err)
{
    struct keeper_reply reply;

    return ask(link, KEEPER_DESTROY, sandbox, &reply, err);
}

int sandbox_tie(struct link *link, const char *sandbox, struct err *err)
{
    struct keeper_reply reply;

    return ask(link, KEEPER_TIE, sandbox, &reply, err);
}

int sandbox_wait(struct link *link, const char *sandbox, struct err *err)
{
    struct keeper_reply reply;

    return ask(link, KEEPER_WAIT, sandbox, &reply, err);
}

int keeper_templates(struct link *link, char (**ret)[KEEPER_NAME_MAX], size_t *ret_count,
                     struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;
    void *list;

    keeper_request_init(&request, KEEPER_TEMPLATES);
    if (link_list(link, &request, &reply, reply.template, sizeof reply.template[0], &list,
                  ret_count, err) < 0)
        return -1;
    *ret = list;
    return 0;
}

int keeper_template(struct link *link, const char *name, struct keeper_template *ret,
                    struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    keeper_request_init(&request, KEEPER_TEMPLATE);
    if (snprintf(request.template, sizeof request.template, "%s", name) >=
        (int) sizeof request.template)
        return err_set(err, ERR_NO_TEMPLATE, "there is no template '%.60s'", name);
    if (link_call(link, &request, &reply, NULL, err) < 0)
        return -1;
    *ret = reply.about;
    return 0;
}

int keeper_hello(struct link *link, struct keeper_hello *ret, struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    keeper_request_init(&request, KEEPER_HELLO);
    if (link_call(link, &request, &reply, NULL, err) < 0)
        return -1;
    reply.hello.default_template[KEEPER_NAME_MAX - 1] = '\0';
    reply.hello.isolation[sizeof reply.hello.isolation - 1] = '\0';
    *ret = reply.hello;
    return 0;
}

static int list_all(struct link *link, uint32_t flags, struct keeper_sandbox **ret_list,
                    size_t *ret_count, struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;
    void *list;

    keeper_request_init(&request, KEEPER_LIST);
    request.flags = flags;
    if (link_list(link, &request, &reply, reply.sandbox, sizeof reply.sandbox[0], &list, ret_count,
                  err) < 0)
        return -1;
    *ret_list = list;
    return 0;
}

int sandbox_list(struct link *link, struct keeper_sandbox **ret_list, size_t *ret_count,
                 struct err *err)
{
    return list_all(link, 0, ret_list, ret_count, err);
}

int sandbox_list_pool(struct link *link, struct keeper_sandbox **ret_list, size_t *ret_count,
                      struct err *err)
{
    return list_all(link, KEEPER_FLAG_POOLED, ret_list, ret_count, err);
}
