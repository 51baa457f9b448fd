/* image_ask - what a client asks of the keeper about images, one request at a time.
 *
 *   image_ask save SANDBOX IMAGE OWNER [stop] [memory] [seal]
 *   image_ask load IMAGE OWNER ID [NAME]
 *   image_ask get|drop IMAGE       image_ask list       image_ask new-id
 *   image_ask size IMAGE           plain or compressed, and its bytes
 *   image_ask compress IMAGE [begin]
 *   image_ask where ID             running, paused (frozen), image, both or none: once it is one of these
 *   image_ask doom ID PID          destroys it; lets PID, which was stopped, go on once the keeper knows
 *   image_ask flood TIMES …        the same request, so many at a time: how each ended
 *
 * A failure is one line, `kind: message`, and exit code 1. COVE_STATE names the state. */
#include "client/image.h"

#include "base/io.h"
#include "base/own.h"
#include "client/sandbox.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTLED_MS 20000

static bool has(char **words, const char *word)
{
    for (; *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

static int ask_save(struct link *link, int argc, char **argv, struct err *err)
{
    struct keeper_image image;
    uint32_t flags = (has(argv, "stop") ? KEEPER_SAVE_STOP : 0u) |
                     (has(argv, "memory") ? KEEPER_SAVE_MEMORY : 0u) |
                     (has(argv, "seal") ? KEEPER_SAVE_SEAL : 0u);

    return argc < 3 ? err_set(err, ERR_USAGE, "save")
                    : image_save(link, argv[0], argv[1], argv[2], flags, &image, err);
}

static int ask_load(struct link *link, int argc, char **argv, struct err *err)
{
    struct image_load_spec spec = { .image = argv[0], .owner = argv[1] };
    struct keeper_sandbox made;
    char id[ID_LEN + 1];

    if (argc < 3)
        return err_set(err, ERR_USAGE, "load");
    spec.id = argv[2];
    spec.name = argv[3];
    if (strcmp(spec.id, "new") == 0) {
        if (sandbox_new_id(id, err) < 0)
            return -1;
        spec.id = id;
    }
    return image_load(link, &spec, &made, err);
}

static int ask_get(struct link *link, int argc, char **argv, struct err *err)
{
    struct keeper_image image;

    (void) argc;
    return image_get(link, argv[0], &image, err);
}

/* "compressed" or "plain", and the bytes. */
static int ask_size(struct link *link, int argc, char **argv, struct err *err)
{
    struct keeper_image image;

    (void) argc;
    if (image_get(link, argv[0], &image, err) < 0)
        return -1;
    printf("%s %llu\n", image.flags & KEEPER_IMAGE_COMPRESSED ? "compressed" : "plain",
           (unsigned long long) image.bytes);
    return 0;
}

static int ask_compress(struct link *link, int argc, char **argv, struct err *err)
{
    struct keeper_image image;

    return image_compress(link, argv[0], argc < 2, &image, err);
}

static int ask_drop(struct link *link, int argc, char **argv, struct err *err)
{
    (void) argc;
    return image_drop(link, argv[0], err);
}

static int ask_list(struct link *link, int argc, char **argv, struct err *err)
{
    auto_free struct keeper_image *list = NULL;
    size_t count = 0;

    (void) argc, (void) argv;
    if (image_list(link, &list, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        printf("%s\n", list[i].id);
    return 0;
}

static int ask_where(struct link *link, int argc, char **argv, struct err *err)
{
    uint64_t until = io_now_ms() + SETTLED_MS;
    struct keeper_sandbox box;
    struct keeper_image image;

    (void) argc;
    for (;;) {
        bool there = sandbox_get(link, argv[0], &box, err) == 0;
        bool image_there = image_get(link, argv[0], &image, err) == 0;
        bool rests = !there || box.life == LIFE_RUNNING || box.life == LIFE_PAUSED;

        if (rests) {
            puts(there && image_there ? "both"
                 : there              ? keeper_life_name(box.life)
                 : image_there        ? "image"
                                      : "none");
            return 0;
        }
        if (io_now_ms() > until)
            return err_set(err, ERR_TIMEOUT, "it stays %s", keeper_life_name(box.life));
        (void) usleep(5000);
    }
}

static int ask_doom(struct link *link, int argc, char **argv, struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;
    struct keeper_sandbox box;
    struct link beside;
    int rc;

    (void) argc;
    keeper_request_init(&request, KEEPER_DESTROY);
    if (link_name(request.sandbox, "sandbox", argv[0], err) < 0 ||
        link_open(&beside, getenv("COVE_STATE"), err) < 0)
        return -1;
    rc = link_send(link, &request, err);
    if (rc == 0)
        rc = sandbox_get(&beside, argv[0], &box, err); /* asked later, answered later */
    if (rc < 0 && err->kind == ERR_NO_SANDBOX)         /* it is gone by then */
        rc = 0;
    link_close(&beside);
    (void) kill((pid_t) strtol(argv[1], NULL, 10), SIGCONT);
    return rc < 0 ? -1 : link_receive(link, KEEPER_DESTROY, &reply, NULL, err);
}

static const struct {
    const char *word;
    int least;
    int (*ask)(struct link *link, int argc, char **argv, struct err *err);
} asks[] = {
    { "save", 3, ask_save }, { "load", 3, ask_load }, { "get", 1, ask_get },
    { "drop", 1, ask_drop }, { "list", 0, ask_list }, { "where", 1, ask_where },
    { "doom", 2, ask_doom }, { "size", 1, ask_size }, { "compress", 1, ask_compress },
};

static int ask_one(int argc, char **argv)
{
    const char *state = getenv("COVE_STATE");
    struct link link;
    struct err err = { .kind = ERR_NONE };
    int rc = -1;

    if (link_open(&link, state ? state : "", &err) == 0) {
        link.patience_ms = 60000;
        for (size_t i = 0; i < ARRAY_LEN(asks); i++)
            if (strcmp(asks[i].word, argv[1]) == 0 && argc - 2 >= asks[i].least)
                rc = asks[i].ask(&link, argc - 2, argv + 2, &err);
    }
    link_close(&link);
    if (rc < 0)
        printf("%s: %s\n", err_kind_info(err.kind)->name, err.msg);
    return rc < 0;
}

int main(int argc, char **argv)
{
    char id[ID_LEN + 1];
    struct err err;
    int times;

    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "new-id") == 0)
        return sandbox_new_id(id, &err) < 0 || puts(id) < 0;
    if (strcmp(argv[1], "flood") != 0 || argc < 4)
        return ask_one(argc, argv);
    times = atoi(argv[2]);
    for (int i = 0; i < times; i++)
        if (fork() == 0) {
            int rc = ask_one(argc - 2, argv + 2);

            if (rc == 0)
                puts("done");
            (void) fflush(stdout);
            _exit(rc);
        }
    while (wait(NULL) > 0)
        ;
    return 0;
}
