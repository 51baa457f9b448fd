#include "agent/core/loop.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

int loop_init(struct loop *loop, struct err *err)
{
    *loop = (struct loop){ .epoll = epoll_create1(EPOLL_CLOEXEC) };
    return loop->epoll < 0 ? err_sys(err, errno, "epoll") : 0;
}

int loop_watch(struct loop *loop, struct watch *watch, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = watch };

    if (watch->added && watch->events == events)
        return 0;
    if (epoll_ctl(loop->epoll, watch->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, watch->fd, &event) < 0)
        return -1;
    if (!watch->added) {
        watch->prev = NULL;
        watch->next = loop->watches;
        if (watch->next)
            watch->next->prev = watch;
        loop->watches = watch;
    }
    watch->added = true;
    watch->events = events;
    return 0;
}

void loop_pause(struct loop *loop, struct watch *watch)
{
    if (!watch->added)
        return;
    (void) epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->added = false;
    *(watch->prev ? &watch->prev->next : &loop->watches) = watch->next;
    if (watch->next)
        watch->next->prev = watch->prev;
    for (int i = 0; i < loop->batch_count; i++)
        if (loop->batch[i].data.ptr == watch)
            loop->batch[i].data.ptr = NULL;
}

void loop_renew(struct loop *loop)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0)
        return;
    for (struct watch *watch = loop->watches; watch; watch = watch->next) {
        struct epoll_event event = { .events = watch->events, .data.ptr = watch };

        if (epoll_ctl(epoll, EPOLL_CTL_ADD, watch->fd, &event) < 0) {
            (void) close(epoll);
            return;
        }
    }
    (void) dup3(epoll, loop->epoll, O_CLOEXEC);
    (void) close(epoll);
}

void loop_disarm(struct loop *loop, struct timer *timer)
{
    if (!timer->at_ms)
        return;
    *(timer->prev ? &timer->prev->next : &loop->first) = timer->next;
    *(timer->next ? &timer->next->prev : &loop->last) = timer->prev;
    timer->prev = timer->next = NULL;
    timer->at_ms = 0;
}

void loop_arm(struct loop *loop, struct timer *timer, uint64_t in_ms, void (*fire)(struct timer *))
{
    uint64_t now = io_now_ms();
    struct timer *before;

    loop_disarm(loop, timer);
    timer->at_ms = in_ms < UINT64_MAX - now ? now + in_ms : UINT64_MAX;
    timer->fire = fire;
    /* From the end: most timers are armed for later than all others. */
    for (before = loop->last; before && before->at_ms > timer->at_ms; before = before->prev)
        ;
    timer->prev = before;
    timer->next = before ? before->next : loop->first;
    *(before ? &before->next : &loop->first) = timer;
    *(timer->next ? &timer->next->prev : &loop->last) = timer;
}

static int wait_ms(const struct loop *loop)
{
    uint64_t now;

    if (!loop->first)
        return -1;
    now = io_now_ms();
    if (loop->first->at_ms <= now)
        return 0;
    return loop->first->at_ms - now < INT_MAX ? (int) (loop->first->at_ms - now) : INT_MAX;
}

static void fire_due(struct loop *loop)
{
    uint64_t now;

    if (!loop->first)
        return;
    now = io_now_ms();
    while (loop->first && loop->first->at_ms <= now) {
        struct timer *timer = loop->first;

        loop_disarm(loop, timer);
        timer->fire(timer);
    }
}

void loop_turn(struct loop *loop)
{
    int n = epoll_wait(loop->epoll, loop->batch, LOOP_BATCH, wait_ms(loop));

    loop->batch_count = n > 0 ? n : 0;
    for (int i = 0; i < loop->batch_count; i++) {
        struct watch *watch = loop->batch[i].data.ptr;

        if (watch)
            watch->ready(watch, loop->batch[i].events);
    }
    loop->batch_count = 0;
    fire_due(loop);
}
