/* When a disk counts as full. What is done then is in tests/fault/full_disk_test. */
#include "check.h"

#include "disk/room.h"

#define MiB (1ull << 20)
#define GiB (1ull << 30)

static void the_default_reserve_is_a_share_with_bounds(void)
{
    CHECK_INT(room_reserve(100 * GiB, 0), 2 * GiB);
    CHECK_INT(room_reserve(1000 * GiB, 0), 4 * GiB);
    CHECK_INT(room_reserve(2 * GiB, 0), 64 * MiB);
    CHECK_INT(room_reserve(100 * MiB, 0), 10 * MiB);
    CHECK_INT(room_reserve(0, 0), 0);
}

static void an_operator_may_keep_up_to_half(void)
{
    CHECK_INT(room_reserve(100 * GiB, 20 * GiB), 20 * GiB);
    CHECK_INT(room_reserve(100 * GiB, MiB), MiB);
    CHECK_INT(room_reserve(10 * GiB, 20 * GiB), 5 * GiB);
}

static void a_disk_is_full_below_its_reserve(void)
{
    CHECK(!room_is_full(false, 100 * MiB, 0, 100 * MiB));
    CHECK(room_is_full(false, 100 * MiB - 1, 0, 100 * MiB));
    CHECK(!room_is_full(false, 0, 0, 0));
}

static void what_is_owed_counts_as_written(void)
{
    CHECK(!room_is_full(false, 500 * MiB, 400 * MiB, 100 * MiB));
    CHECK(room_is_full(false, 500 * MiB, 401 * MiB, 100 * MiB));
    CHECK(room_is_full(false, 500 * MiB, UINT64_MAX, 100 * MiB));
}

static void a_full_disk_needs_more_than_its_reserve_to_have_room_again(void)
{
    CHECK(room_is_full(true, 124 * MiB, 0, 100 * MiB));
    CHECK(!room_is_full(true, 125 * MiB, 0, 100 * MiB));
    CHECK(room_is_full(true, 225 * MiB, 101 * MiB, 100 * MiB));
}

CHECK_MAIN(T(the_default_reserve_is_a_share_with_bounds), T(an_operator_may_keep_up_to_half),
           T(a_disk_is_full_below_its_reserve), T(what_is_owed_counts_as_written),
           T(a_full_disk_needs_more_than_its_reserve_to_have_room_again))
