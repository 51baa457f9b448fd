#include "check.h"

#include "base/own.h"
#include "jail/ids.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/cove-ids.XXXXXX";
static int claims = -1, cgroups = -1;
static struct err err;

static void begin(void)
{
    char command[128];

    if (claims < 0 && !mkdtemp(path))
        abort();
    (void) snprintf(command, sizeof command, "rm -rf %s/c %s/g; mkdir %s/c %s/g", path, path, path,
                    path);
    if (system(command) != 0)
        abort();
    own_close(&claims);
    own_close(&cgroups);
    (void) snprintf(command, sizeof command, "%s/c", path);
    claims = open(command, O_RDONLY | O_DIRECTORY);
    (void) snprintf(command, sizeof command, "%s/g", path);
    cgroups = open(command, O_RDONLY | O_DIRECTORY);
}

static uint32_t claim(const char *instance, struct ids *ids)
{
    CHECK(ids_open(ids, dup(claims), cgroups, instance, &err) == 0);
    return ids->block[0];
}

static void two_that_live_get_different_blocks(void)
{
    struct ids a, b;

    begin();
    CHECK(claim("cove-a", &a) != claim("cove-b", &b));
    ids_close(&a);
    ids_close(&b);
}

static void an_instance_finds_its_block_again(void)
{
    uint32_t first;
    struct ids a, b, c;

    begin();
    (void) claim("cove-a", &a);
    first = claim("cove-b", &b);
    (void) mkdirat(cgroups, "cove-b", 0755);
    ids_close(&b);
    ids_close(&a); /* a smaller block is free now */
    CHECK_INT(claim("cove-b", &c), first);
    ids_close(&c);
}

/* A full /run, or a kill in the middle: what the file says about sandboxes that live must stay. */
static void a_claim_is_not_lost_when_it_cannot_be_written(void)
{
    struct rlimit before, none = { 0 };
    struct ids a, b;
    uint32_t first;
    int rc;

    begin();
    first = claim("cove-a", &a);
    (void) mkdirat(cgroups, "cove-a", 0755);
    ids_close(&a);
    (void) getrlimit(RLIMIT_FSIZE, &before);
    none.rlim_max = before.rlim_max;
    (void) signal(SIGXFSZ, SIG_IGN);
    (void) setrlimit(RLIMIT_FSIZE, &none);
    rc = ids_open(&a, dup(claims), cgroups, "cove-a", &err);
    (void) setrlimit(RLIMIT_FSIZE, &before);
    CHECK_INT(rc, 0);
    if (rc == 0)
        ids_close(&a);
    CHECK(claim("cove-b", &b) != first);
    ids_close(&b);
}

static void a_dead_instance_keeps_its_block_while_it_has_cgroups(void)
{
    uint32_t first;
    struct ids a, b;

    begin();
    first = claim("cove-a", &a);
    (void) mkdirat(cgroups, "cove-a", 0755);
    ids_close(&a);
    CHECK(claim("cove-b", &b) != first);
    ids_close(&b);
}

static void a_dead_instance_without_cgroups_loses_its_block(void)
{
    uint32_t first;
    struct ids a, b;

    begin();
    first = claim("cove-a", &a);
    ids_close(&a);
    CHECK_INT(claim("cove-b", &b), first);
    ids_close(&b);
}

static void garbage_in_a_claim_is_nobodys(void)
{
    struct ids a;
    int fd;

    begin();
    fd = openat(claims, "0", O_WRONLY | O_CREAT, 0600);
    IGNORE(write(fd, "../../etc\n", 10) < 0);
    (void) close(fd);
    CHECK_INT(claim("cove-a", &a), 0);
    ids_close(&a);
}

static void when_all_blocks_are_taken_it_says_so(void)
{
    struct ids ids[IDS_BLOCKS], more;

    begin();
    for (uint32_t i = 0; i < IDS_BLOCKS; i++) {
        char name[32];

        (void) snprintf(name, sizeof name, "cove-%u", i);
        CHECK_INT(claim(name, &ids[i]), i);
    }
    CHECK(ids_open(&more, dup(claims), cgroups, "cove-more", &err) == -1);
    CHECK_INT(err.kind, ERR_NO_IDS);
    CHECK_INT(more.count, 0);
    CHECK_INT(more.dir_fd, -1);
    CHECK(ids_grow(&ids[0], &err) == -1);
    CHECK_STR(err.msg, "all 30 blocks of user ids belong to other instances");
    CHECK_INT(ids[0].count, 1);
    for (uint32_t i = 0; i < IDS_BLOCKS; i++)
        ids_close(&ids[i]);
}

static void an_instance_grows_to_four_blocks_and_no_further(void)
{
    struct ids a, b;

    begin();
    (void) claim("cove-a", &a);
    (void) claim("cove-b", &b);
    for (uint32_t i = 1; i < IDS_BLOCKS_EACH; i++)
        CHECK(ids_grow(&a, &err) == 0);
    CHECK_INT(a.count, IDS_BLOCKS_EACH);
    CHECK_INT(a.block[1], 2); /* behind the other instance's */
    CHECK(ids_base(&a, IDS_SLOTS) == ids_first_of(2, 0));
    CHECK(ids_base(&a, IDS_SLOTS - 1) == ids_first_of(0, IDS_SLOTS - 1));
    CHECK(ids_grow(&a, &err) == -1);
    CHECK_INT(err.kind, ERR_NO_IDS);
    CHECK_STR(err.msg, "all 4 blocks of user ids of this instance are in use");
    CHECK_INT(a.count, IDS_BLOCKS_EACH);
    ids_close(&a);
    ids_close(&b);
}

/* Sandboxes of its second block live on when the keeper dies. */
static void an_instance_finds_all_of_its_blocks_again_in_order(void)
{
    struct ids a, b, other;
    uint32_t blocks[3];

    begin();
    (void) claim("cove-other", &other);
    (void) claim("cove-a", &a);
    CHECK(ids_grow(&a, &err) == 0 && ids_grow(&a, &err) == 0);
    memcpy(blocks, a.block, sizeof blocks);
    (void) mkdirat(cgroups, "cove-a", 0755);
    ids_close(&a);
    ids_close(&other); /* a smaller block is free now */
    (void) claim("cove-b", &b);
    CHECK(ids_grow(&b, &err) == 0);
    (void) claim("cove-a", &a);
    CHECK_INT(a.count, 3);
    CHECK(memcmp(blocks, a.block, sizeof blocks) == 0);
    for (uint32_t i = 0; i < b.count; i++)
        for (uint32_t j = 0; j < a.count; j++)
            CHECK(b.block[i] != a.block[j]);
    ids_close(&a);
    ids_close(&b);
}

/* A version before read one line: it must see the instance, and its cgroups, behind every block. */
static void every_block_names_its_instance_in_the_first_line(void)
{
    struct ids a;
    char text[64] = "";
    int fd;

    begin();
    (void) claim("cove-a", &a);
    CHECK(ids_grow(&a, &err) == 0);
    fd = openat(claims, "0", O_RDONLY);
    CHECK(read(fd, text, sizeof text - 1) == 7);
    CHECK_STR(text, "cove-a\n");
    (void) close(fd);
    fd = openat(claims, "1", O_RDONLY);
    CHECK(read(fd, text, sizeof text - 1) == 9);
    CHECK_STR(text, "cove-a\n1\n");
    (void) close(fd);
    ids_close(&a);
}

static void ranges_never_overlap_nor_reach_zero_or_the_end(void)
{
    uint64_t last = IDS_FIRST;

    for (uint32_t block = 0; block < IDS_BLOCKS; block++)
        for (uint32_t slot = 0; slot < IDS_SLOTS; slot++) {
            uint64_t base = ids_first_of(block, slot);

            CHECK(base == last);
            last = base + IDS_PER_SANDBOX;
        }
    CHECK(IDS_FIRST > 65536);
    CHECK(last < UINT32_MAX);
}

static void the_scratch_directory_goes(void)
{
    char command[64];

    (void) snprintf(command, sizeof command, "rm -rf %s", path);
    CHECK(system(command) == 0);
}

static void an_instance_in_a_slice_keeps_its_block_while_it_has_cgroups(void)
{
    uint32_t first;
    struct ids a, b;

    begin();
    first = claim("cove.slice/cove-a", &a);
    (void) mkdirat(cgroups, "cove.slice", 0755);
    (void) mkdirat(cgroups, "cove.slice/cove-a", 0755);
    ids_close(&a);
    CHECK(claim("cove-b", &b) != first);
    ids_close(&b);
    CHECK_INT(claim("cove.slice/cove-a", &a), first);
    ids_close(&a);
}

CHECK_MAIN(T(an_instance_in_a_slice_keeps_its_block_while_it_has_cgroups),
           T(two_that_live_get_different_blocks), T(an_instance_finds_its_block_again),
           T(a_claim_is_not_lost_when_it_cannot_be_written),
           T(a_dead_instance_keeps_its_block_while_it_has_cgroups),
           T(a_dead_instance_without_cgroups_loses_its_block), T(garbage_in_a_claim_is_nobodys),
           T(when_all_blocks_are_taken_it_says_so),
           T(an_instance_grows_to_four_blocks_and_no_further),
           T(an_instance_finds_all_of_its_blocks_again_in_order),
           T(every_block_names_its_instance_in_the_first_line),
           T(ranges_never_overlap_nor_reach_zero_or_the_end), T(the_scratch_directory_goes))
