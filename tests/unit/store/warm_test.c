#include "store/store.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

static int count(void *arg, const struct store_warm *warm, struct err *ignored)
{
    (void) ignored;
    *(size_t *) arg += strlen(warm->image);
    return 0;
}

static void a_template_has_one_image(void)
{
    struct store_warm a = { .template = "base",
                            .image = "i1",
                            .start = "serve",
                            .ready = "look",
                            .modules = "json",
                            .made_ms = 7,
                            .bytes = 8 },
                      got;
    char state[] = "/tmp/cove-store.XXXXXX", command[64];
    struct store *store;
    struct err err;
    size_t sum = 0;

    CHECK(mkdtemp(state) != NULL);
    CHECK_INT(store_open(state, &store, &err), 0);
    CHECK_INT(store_warm_get(store, "base", &got, &err), 0);
    CHECK_INT(store_warm_set(store, &a, &err), 0);
    strcpy(a.image, "i22");
    CHECK_INT(store_warm_set(store, &a, &err), 0);
    CHECK_INT(store_warm_get(store, "base", &got, &err), 1);
    CHECK_STR(got.image, "i22");
    CHECK_STR(got.start, "serve");
    CHECK_STR(got.ready, "look");
    CHECK_STR(got.modules, "json");
    CHECK_INT(got.made_ms, 7);
    CHECK_INT(got.bytes, 8);
    CHECK_INT(store_warm_list(store, count, &sum, &err), 0);
    CHECK_INT(sum, 3);
    CHECK_INT(store_warm_remove(store, "base", &err), 0);
    CHECK_INT(store_warm_remove(store, "base", &err), 0);
    CHECK_INT(store_warm_get(store, "base", &got, &err), 0);
    strcpy(a.template, "../x");
    CHECK_INT(store_warm_set(store, &a, &err), -1);
    store_close(store);
    (void) snprintf(command, sizeof command, "rm -rf %s", state);
    CHECK(system(command) == 0);
}

CHECK_MAIN(T(a_template_has_one_image))
