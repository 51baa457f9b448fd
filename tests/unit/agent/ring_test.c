#include "agent/proc/ring.h"
#include "check.h"

static void put(struct ring *ring, const char *text, uint64_t pin)
{
    while (*text) {
        struct iovec iov[2];
        int parts;
        uint32_t n = ring_room(ring, (uint32_t) strlen(text), pin, iov, &parts);

        if (n == 0)
            return;
        for (int i = 0; i < parts; i++) {
            memcpy(iov[i].iov_base, text, iov[i].iov_len);
            text += iov[i].iov_len;
        }
        ring_put(ring, n);
    }
}

static const char *get(const struct ring *ring, uint64_t from)
{
    static char out[65536];
    struct iovec iov[2];
    size_t len = 0;
    int parts;

    (void) ring_peek(ring, from, sizeof out - 1, iov, &parts);
    for (int i = 0; i < parts; i++) {
        memcpy(out + len, iov[i].iov_base, iov[i].iov_len);
        len += iov[i].iov_len;
    }
    out[len] = '\0';
    return out;
}

/* n bytes that name their own offset, so that a misplaced one shows. */
static const char *pattern(uint64_t from, size_t n)
{
    static char text[65536];

    for (size_t i = 0; i < n; i++)
        text[i] = (char) ('a' + (from + i) % 23);
    text[n] = '\0';
    return text;
}

static void sizes_are_kept_within_their_bounds(void)
{
    struct ring ring;

    ring_init(&ring, 0);
    CHECK_INT(ring.most, RING_DEFAULT);
    ring_init(&ring, 1);
    CHECK_INT(ring.most, RING_LEAST);
    ring_init(&ring, UINT64_MAX);
    CHECK_INT(ring.most, RING_MOST);
}

static void nothing_is_allocated_before_output_comes(void)
{
    struct ring ring;

    ring_init(&ring, 0);
    CHECK(!ring.data);
    put(&ring, "x", RING_NO_PIN);
    CHECK_INT(ring.size, RING_LEAST);
    CHECK_STR(get(&ring, 0), "x");
    ring_done(&ring);
    ring_done(&ring);
}

static void growing_keeps_every_byte_in_place(void)
{
    struct ring ring;

    ring_init(&ring, 60000);
    for (uint64_t at = 0; at < 59000; at += 1000)
        put(&ring, pattern(at, 1000), 0);
    CHECK_INT(ring.start, 0);
    CHECK_INT(ring.end, 59000);
    CHECK_STR(get(&ring, 0), pattern(0, 59000));
    ring_done(&ring);
}

static void the_oldest_bytes_go_when_nobody_reads(void)
{
    struct ring ring;

    ring_init(&ring, 5000);
    for (uint64_t at = 0; at < 70000; at += 700)
        put(&ring, pattern(at, 700), RING_NO_PIN);
    CHECK_INT(ring.end, 70000);
    CHECK_INT(ring.start, 65000);
    CHECK_STR(get(&ring, 65000), pattern(65000, 5000));
    CHECK_STR(get(&ring, 69999), pattern(69999, 1));
    ring_done(&ring);
}

static void a_reader_keeps_what_it_has_not_read(void)
{
    struct ring ring;
    struct iovec iov[2];
    int parts;

    ring_init(&ring, RING_LEAST);
    put(&ring, pattern(0, RING_LEAST), 0);
    CHECK_INT(ring_room(&ring, 1, 0, iov, &parts), 0);
    CHECK(ring_full(&ring, 0));
    CHECK(!ring_full(&ring, 10));
    CHECK_INT(ring_room(&ring, 100, 10, iov, &parts), 10);
    CHECK_INT(ring.start, 10);
    CHECK_INT(ring_room(&ring, 100, 10, iov, &parts), 10);
    ring_put(&ring, 10);
    CHECK_INT(ring_room(&ring, 100, 10, iov, &parts), 0);
    ring_done(&ring);
}

static void a_request_for_more_than_the_ring_gets_the_ring(void)
{
    struct ring ring;
    struct iovec iov[2];
    int parts;

    ring_init(&ring, RING_LEAST);
    put(&ring, "abc", RING_NO_PIN);
    CHECK_INT(ring_room(&ring, 1000000, RING_NO_PIN, iov, &parts), RING_LEAST);
    CHECK_INT(ring.start, 3);
    ring_done(&ring);
}

static void trimming_keeps_the_bytes_and_no_more(void)
{
    struct ring ring;

    ring_init(&ring, RING_LEAST);
    put(&ring, pattern(0, 6000), RING_NO_PIN);
    ring.start = 5000;
    ring_trim(&ring);
    CHECK_INT(ring.size, 1000);
    CHECK_STR(get(&ring, 5000), pattern(5000, 1000));
    ring.start = ring.end;
    ring_trim(&ring);
    CHECK(!ring.data);
    ring_done(&ring);
}

static void a_forgetting_ring_only_counts(void)
{
    struct ring ring;

    ring_init(&ring, 0);
    put(&ring, "hello", RING_NO_PIN);
    ring_forget(&ring);
    ring_put(&ring, 10);
    CHECK_INT(ring.start, 15);
    CHECK_INT(ring.end, 15);
    CHECK(!ring.data);
}

CHECK_MAIN(T(sizes_are_kept_within_their_bounds), T(nothing_is_allocated_before_output_comes),
           T(growing_keeps_every_byte_in_place), T(the_oldest_bytes_go_when_nobody_reads),
           T(a_reader_keeps_what_it_has_not_read),
           T(a_request_for_more_than_the_ring_gets_the_ring),
           T(trimming_keeps_the_bytes_and_no_more), T(a_forgetting_ring_only_counts))
