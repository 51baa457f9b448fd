#include "check.h"

#include "base/own.h"
#include "image/ranges.h"

#include <stdio.h>
#include <string.h>

static struct ranges r;
static char text[512];

/* As text: start-end:offset … */
static const char *all(void)
{
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < r.count; i++)
        len +=
            (size_t) snprintf(text + len, sizeof text - len, "%s%llx-%llx:%llx", i ? " " : "",
                              (unsigned long long) r.at[i].start, (unsigned long long) r.at[i].end,
                              (unsigned long long) r.at[i].offset);
    return text;
}

static void begin(void)
{
    ranges_done(&r);
    CHECK(ranges_add(&r, 0x1000, 0x5000, 0) == 0);
    CHECK(ranges_add(&r, 0x8000, 0x9000, 0x4000) == 0);
}

static void what_is_out_of_order_is_refused(void)
{
    begin();
    CHECK(ranges_add(&r, 0x7000, 0x8000, 0x5000) == -1);
    CHECK(ranges_add(&r, 0x8000, 0x9000, 0x5000) == -1);
    CHECK(ranges_add(&r, 0xb000, 0xa000, 0x5000) == -1);
    CHECK_STR(all(), "1000-5000:0 8000-9000:4000");
}

static void neighbours_in_memory_and_in_the_file_are_one(void)
{
    begin();
    CHECK(ranges_add(&r, 0x9000, 0xa000, 0x5000) == 0);
    CHECK(ranges_add(&r, 0xa000, 0xb000, 0x9000) == 0);
    CHECK_STR(all(), "1000-5000:0 8000-a000:4000 a000-b000:9000");
}

static void an_address_is_found_in_its_range_only(void)
{
    begin();
    CHECK(ranges_find(&r, 0xfff) == NULL);
    CHECK(ranges_find(&r, 0x4fff) == &r.at[0]);
    CHECK(ranges_find(&r, 0x5000) == NULL);
    CHECK(ranges_find(&r, 0x8000) == &r.at[1]);
    CHECK(ranges_bytes(&r) == 0x5000);
}

static void a_drop_splits_shortens_and_removes(void)
{
    begin();
    CHECK(ranges_drop(&r, 0x2000, 0x3000) == 0);
    CHECK_STR(all(), "1000-2000:0 3000-5000:2000 8000-9000:4000");
    CHECK(ranges_drop(&r, 0x4000, 0x8000) == 0);
    CHECK_STR(all(), "1000-2000:0 3000-4000:2000 8000-9000:4000");
    CHECK(ranges_drop(&r, 0x5000, 0x5000) == 0);
    CHECK(ranges_drop(&r, 0, 0x10000) == 0);
    CHECK_STR(all(), "");
}

static void a_move_takes_along_what_waits(void)
{
    begin();
    CHECK(ranges_move(&r, 0x2000, 0x20000, 0x2000) == 0);
    CHECK_STR(all(), "1000-2000:0 4000-5000:3000 8000-9000:4000 20000-22000:1000");
    CHECK(ranges_move(&r, 0x20000, 0x2000, 0x2000) == 0); /* and back, before others */
    CHECK_STR(all(), "1000-2000:0 2000-4000:1000 4000-5000:3000 8000-9000:4000");
}

static void a_move_over_others_replaces_them(void)
{
    begin();
    CHECK(ranges_move(&r, 0x8000, 0x3000, 0x1000) == 0);
    CHECK_STR(all(), "1000-3000:0 3000-4000:4000 4000-5000:3000");
}

static void a_copy_is_of_its_own(void)
{
    struct ranges copy = { .count = 0 };

    begin();
    CHECK(ranges_copy(&r, &copy) == 0);
    CHECK(ranges_drop(&r, 0, 0x10000) == 0);
    CHECK(copy.count == 2 && copy.at[1].offset == 0x4000);
    ranges_done(&copy);
}

static void there_is_an_end_to_them(void)
{
    uint64_t i = 0;

    ranges_done(&r);
    while (i <= RANGES_MAX && ranges_add(&r, i * 0x2000, i * 0x2000 + 0x1000, i * 0x1000) == 0)
        i++;
    CHECK(i == RANGES_MAX);
    CHECK(ranges_drop(&r, 0x100, 0x200) == -1);
    ranges_done(&r);
}

static void there_is_an_end_to_all_of_them_together(void)
{
    struct ranges copy[RANGES_ALL / RANGES_MAX] = { { .count = 0 } };
    size_t made = 0;

    for (uint64_t i = 0; i < RANGES_MAX; i++)
        (void) ranges_add(&r, i * 0x2000, i * 0x2000 + 0x1000, i * 0x1000);
    while (made < ARRAY_LEN(copy) && ranges_copy(&r, &copy[made]) == 0)
        made++;
    CHECK(made == ARRAY_LEN(copy) - 1);
    ranges_done(&copy[0]);
    CHECK(ranges_copy(&r, &copy[made]) == 0);
    for (size_t i = 1; i < ARRAY_LEN(copy); i++)
        ranges_done(&copy[i]);
    ranges_done(&r);
}

CHECK_MAIN(T(what_is_out_of_order_is_refused), T(neighbours_in_memory_and_in_the_file_are_one),
           T(an_address_is_found_in_its_range_only), T(a_drop_splits_shortens_and_removes),
           T(a_move_takes_along_what_waits), T(a_move_over_others_replaces_them),
           T(a_copy_is_of_its_own), T(there_is_an_end_to_them),
           T(there_is_an_end_to_all_of_them_together))
