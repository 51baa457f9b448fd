/* cove-pull: gets an image's manifest and blobs from a registry, for tenants. It reads what a registry sends that anybody may have named,
 * and has nothing to lose: a user of its own, no capabilities, no files but those that its parent hands it. Connections are made by
 * cove-dial, which refuses addresses that are not public after it has looked up their names: of the registry, of where that
 * leads to by a redirect, and of where it wants a login. message.h has what it says. */
#include "base/io.h"
#include "base/lockdown.h"
#include "base/log.h"
#include "base/own.h"
#include "puller/message.h"
#include "puller/rights.h"
#include "registry/image.h"
#include "wire/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define MEMORY_MAX   (512ull << 20)
#define BLOBS_SPARE  (16u << 20)
#define TELL_EVERY   (1u << 20) /* bytes between two words on how far it is */
#define FILES_MAX    64
#define SILENCE_MOST 600000u

struct puller {
    struct registry registry;
    struct registry_image image;
    uint64_t size, told; /* of the blob that arrives */
};

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *fmt, ...)
{
    char text[PULLER_MESSAGE_MAX];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (len >= (int) sizeof text)
        len = sizeof text - 1;
    if (io_send_fds(PULLER_SOCKET, text, (size_t) len, NULL, 0) != len)
        exit(1); /* the parent is gone */
}

static int fail(const struct err *err)
{
    tell("e %s %s", err_kind_info(err->kind)->name, err->msg);
    return 1;
}

static void show(void *context, uint64_t bytes)
{
    struct puller *p = context;

    if (bytes < p->told + TELL_EVERY && bytes < p->size)
        return;
    p->told = bytes;
    tell("p %" PRIu64 " %" PRIu64, bytes, p->size);
}

/* ---- the order ---- */

static int set_up(struct puller *p, const struct pull_order *order, struct err *err)
{
    struct registry *r = &p->registry;

    if (reference_parse(order->reference, &r->reference, err) < 0)
        return -1;
    r->foreign = true;
    r->timeout_ms = order->silence_ms < SILENCE_MOST ? order->silence_ms : SILENCE_MOST;
    r->until_ms = io_now_ms() + pull_order_limit(order);
    r->progress = show;
    r->context = p;
    (void) snprintf(r->dialer, sizeof r->dialer, "/proc/self/fd/%d", PULLER_DIALER);
    (void) snprintf(r->basic, sizeof r->basic, "%s", order->basic);
    (void) snprintf(r->hosts, sizeof r->hosts, "%s", order->hosts);
    registry_mirror_find(order->mirrors, r->reference.host, r->mirror, sizeof r->mirror);
    (void) snprintf(r->proxy, sizeof r->proxy, "%.299s", order->proxy);
    return 0;
}

/* What is compressed is smaller than the content, which bytes_most is about, but for what has a little more around it. */
static uint64_t blobs_most(uint64_t bytes_most)
{
    return bytes_most == 0 || bytes_most > REGISTRY_IMAGE_MAX
               ? REGISTRY_IMAGE_MAX
               : bytes_most + bytes_most / 8 + BLOBS_SPARE;
}

static int begin(struct puller *p, struct err *err)
{
    auto_free struct pull_order *order = malloc(sizeof *order + 1);
    auto_close int fd = -1;
    size_t fds = 0;
    ssize_t n;
    int r = -1;

    if (!order)
        return err_set(err, ERR_NO_MEMORY, "no memory for a pull");
    n = io_recv_fds(PULLER_SOCKET, order, sizeof *order + 1, &fd, 1, &fds);
    if (n < 0 || fds != 1)
        return err_set(err, ERR_PROTOCOL, "cove-pull got no order");
    if (pull_order_check(order, (size_t) n, err) == 0 && set_up(p, order, err) == 0 &&
        registry_image_find(&p->registry, &p->image, err) == 0 &&
        registry_image_check(&p->image.manifest, blobs_most(order->bytes_most), err) == 0)
        r = io_write_all(fd, p->image.text, p->image.len) < 0
                ? err_sys(err, errno, "keep the manifest")
                : 0;
    explicit_bzero(order, sizeof *order);
    return r;
}

/* ---- blobs ---- */

static int get(struct puller *p, const char *hex, int fd, struct err *err)
{
    const struct oci_descriptor *blob = registry_image_blob(&p->image, hex);

    if (!blob)
        return err_set(err, ERR_NO_PATH, "the image has no blob %.64s", hex);
    p->size = blob->size;
    p->told = 0;
    return registry_blob(&p->registry, blob, fd, err);
}

/* Until the parent wants no more. */
static int serve(struct puller *p, struct err *err)
{
    for (;;) {
        auto_close int fd = -1;
        char text[PULLER_MESSAGE_MAX];
        size_t fds = 0;
        ssize_t n = io_recv_fds(PULLER_SOCKET, text, sizeof text - 1, &fd, 1, &fds);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        text[n] = '\0';
        if (n != 66 || strncmp(text, "g ", 2) != 0 || fds != 1)
            return err_set(err, ERR_PROTOCOL, "cove-pull was asked for something unknown");
        if (get(p, text + 2, fd, err) < 0)
            return -1;
        tell("+");
    }
}

static int limit_self(struct err *err)
{
    const struct {
        int what;
        rlim_t most;
    } rows[] = { { RLIMIT_AS,
                   lockdown_filters() ? MEMORY_MAX : RLIM_INFINITY }, /* sanitizers map terabytes */
                 { RLIMIT_CORE, 0 },
                 { RLIMIT_NOFILE, FILES_MAX },
                 { RLIMIT_FSIZE, OCI_LAYER_MAX + (1u << 20) } };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rlimit limit = { rows[i].most, rows[i].most };

        if (setrlimit((__rlimit_resource_t) rows[i].what, &limit) < 0)
            return err_sys(err, errno, "limit %d", rows[i].what);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct puller puller; /* large */
    struct err err;
    int r;

    if (argc > 1) {
        (void) puts(strcmp(argv[1], "--version") == 0
                        ? "cove-pull " COVE_VERSION
                        : "usage: cove-pull\n\nStarted by 'cove up', for builds of tenants.");
        return strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "--help") == 0 ? 0 : 64;
    }
    log_init("cove-pull", LOG_INFO);
    (void) prctl(PR_SET_NAME,
                 "cove-pull"); /* not the number of a descriptor, as with older kernels */
    (void) prctl(PR_SET_DUMPABLE, 0);
    (void) signal(SIGPIPE, SIG_IGN);
    (void) signal(SIGCHLD, SIG_IGN); /* of cove-dial; they are not waited for */
    (void) fcntl(PULLER_SOCKET, F_SETFD, FD_CLOEXEC);
    (void) fcntl(PULLER_DIALER, F_SETFD, FD_CLOEXEC);
    r = limit_self(&err) < 0 || rights_drop(&err) < 0 ? -1 : begin(&puller, &err);
    if (r == 0) {
        tell("d %s", puller.image.digest);
        r = serve(&puller, &err);
    }
    registry_image_done(&puller.image);
    explicit_bzero(&puller, sizeof puller);
    return r < 0 ? fail(&err) : 0;
}
