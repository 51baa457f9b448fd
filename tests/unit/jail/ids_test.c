#include "check.h"

#include "base/own.h"
#include "jail/ids.h"

#include <fcntl.h>
#include <sys/stat.h>

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

static uint32_t claim(const char *instance, int *lock)
{
    uint32_t block = 999;

    *lock = -1;
    CHECK(ids_claim(claims, cgroups, instance, &block, lock, &err) == 0);
    CHECK(*lock >= 0);
    return block;
}

static void two_that_live_get_different_blocks(void)
{
    int a, b;

    begin();
    CHECK(claim("cove-a", &a) != claim("cove-b", &b));
    own_close(&a);
    own_close(&b);
}

static void an_instance_finds_its_block_again(void)
{
    uint32_t first;
    int a, b, c;

    begin();
    (void) claim("cove-a", &a);
    first = claim("cove-b", &b);
    (void) mkdirat(cgroups, "cove-b", 0755);
    own_close(&b);
    own_close(&a); /* a smaller block is free now */
    CHECK_INT(claim("cove-b", &c), first);
    own_close(&c);
}

static void a_dead_instance_keeps_its_block_while_it_has_cgroups(void)
{
    uint32_t first;
    int a, b;

    begin();
    first = claim("cove-a", &a);
    (void) mkdirat(cgroups, "cove-a", 0755);
    own_close(&a);
    CHECK(claim("cove-b", &b) != first);
    own_close(&b);
}

static void a_dead_instance_without_cgroups_loses_its_block(void)
{
    uint32_t first;
    int a, b;

    begin();
    first = claim("cove-a", &a);
    own_close(&a);
    CHECK_INT(claim("cove-b", &b), first);
    own_close(&b);
}

static void garbage_in_a_claim_is_nobodys(void)
{
    int fd, a;

    begin();
    fd = openat(claims, "0", O_WRONLY | O_CREAT, 0600);
    IGNORE(write(fd, "../../etc\n", 10) < 0);
    (void) close(fd);
    CHECK_INT(claim("cove-a", &a), 0);
    own_close(&a);
}

static void when_all_blocks_are_taken_it_says_so(void)
{
    int locks[IDS_BLOCKS], more = -1;
    uint32_t block = 999;

    begin();
    for (uint32_t i = 0; i < IDS_BLOCKS; i++) {
        char name[32];

        (void) snprintf(name, sizeof name, "cove-%u", i);
        CHECK_INT(claim(name, &locks[i]), i);
    }
    CHECK(ids_claim(claims, cgroups, "cove-more", &block, &more, &err) == -1);
    CHECK_INT(err.kind, ERR_NO_IDS);
    CHECK_INT(more, -1);
    CHECK_INT(block, 999);
    for (uint32_t i = 0; i < IDS_BLOCKS; i++)
        own_close(&locks[i]);
}

static void ranges_never_overlap_nor_reach_zero_or_the_end(void)
{
    uint64_t last = IDS_FIRST;

    for (uint32_t block = 0; block < IDS_BLOCKS; block++)
        for (uint32_t slot = 0; slot < IDS_SLOTS; slot++) {
            uint64_t base = ids_base(block, slot);

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
    int a, b;

    begin();
    first = claim("cove.slice/cove-a", &a);
    (void) mkdirat(cgroups, "cove.slice", 0755);
    (void) mkdirat(cgroups, "cove.slice/cove-a", 0755);
    own_close(&a);
    CHECK(claim("cove-b", &b) != first);
    own_close(&b);
    CHECK_INT(claim("cove.slice/cove-a", &a), first);
    own_close(&a);
}

CHECK_MAIN(T(an_instance_in_a_slice_keeps_its_block_while_it_has_cgroups), T(two_that_live_get_different_blocks), T(an_instance_finds_its_block_again),
           T(a_dead_instance_keeps_its_block_while_it_has_cgroups),
           T(a_dead_instance_without_cgroups_loses_its_block), T(garbage_in_a_claim_is_nobodys),
           T(when_all_blocks_are_taken_it_says_so),
           T(ranges_never_overlap_nor_reach_zero_or_the_end), T(the_scratch_directory_goes))
