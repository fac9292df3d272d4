/* The C of gateway/runtime/sync_calls.pxd: rounds of syncs that need no interpreter. */
#ifndef LMQ_SYNC_CALLS_H
#define LMQ_SYNC_CALLS_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if __has_include(<linux/aio_abi.h>) /* else what is to be synced beside the rest is synced after it */
#include <linux/aio_abi.h>
#define LMQ_ASKS_AHEAD 1
#else
#define LMQ_ASKS_AHEAD 0
#endif
enum { LMQ_STOPS, LMQ_HAS_STEPS, LMQ_ERROR, LMQ_TOOK_NS, LMQ_COUNT, LMQ_COUNT_BESIDE, LMQ_FILES };
enum { LMQ_BESIDE = LMQ_FILES + 32, LMQ_BESIDE_MAX = 4 };
static inline int64_t lmq_monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static inline void lmq_sync_one(int fd, int64_t *work) {
    int result;
    do result = fdatasync(fd); while (result < 0 && errno == EINTR);
    if (result < 0) work[LMQ_ERROR] = errno;
}
/* Of the thread that syncs: how many requests are under way. */
static __thread int64_t lmq_under_way;
#if LMQ_ASKS_AHEAD
static __thread aio_context_t lmq_requests;
/* Ask for as many as the system takes, in their order; it may take none. */
static inline void lmq_begin_beside(int64_t *work) {
    struct iocb requests[LMQ_BESIDE_MAX], *pointers[LMQ_BESIDE_MAX];
    int64_t count = work[LMQ_COUNT_BESIDE];
    long taken;
    lmq_under_way = 0;
    if (count < 1 || count > LMQ_BESIDE_MAX) return;
    if (!lmq_requests && syscall(SYS_io_setup, LMQ_BESIDE_MAX, &lmq_requests) < 0) {
        lmq_requests = 0;
        return;
    }
    memset(requests, 0, sizeof requests);
    for (int64_t k = 0; k < count; k++) {
        requests[k].aio_lio_opcode = IOCB_CMD_FDSYNC;
        requests[k].aio_fildes = (uint32_t)work[LMQ_BESIDE + k];
        pointers[k] = &requests[k];
    }
    taken = syscall(SYS_io_submit, lmq_requests, (long)count, pointers);
    if (taken > 0) lmq_under_way = taken;
}
static inline void lmq_await_beside(int64_t *work) {
    struct io_event events[LMQ_BESIDE_MAX];
    while (lmq_under_way > 0) {
        long count = syscall(SYS_io_getevents, lmq_requests, 1L, (long)lmq_under_way, events, (void *)0);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            work[LMQ_ERROR] = errno;
            return;
        }
        for (long k = 0; k < count; k++)
            if (events[k].res < 0) work[LMQ_ERROR] = -events[k].res;
        lmq_under_way -= count;
    }
}
static inline void lmq_end_requests(void) {
    if (lmq_requests) syscall(SYS_io_destroy, lmq_requests);
    lmq_requests = 0;
}
#else
static inline void lmq_begin_beside(int64_t *work) { (void)work; }
static inline void lmq_await_beside(int64_t *work) { (void)work; }
static inline void lmq_end_requests(void) {}
#endif
/* Wait for those, and sync the others here; what the disk refused is in `work`. */
static inline void lmq_sync_beside(int64_t *work) {
    int64_t begun = lmq_under_way;
    lmq_await_beside(work);
    for (int64_t k = begun; k < work[LMQ_COUNT_BESIDE] && !work[LMQ_ERROR]; k++)
        lmq_sync_one((int)work[LMQ_BESIDE + k], work);
}
/* -1 with errno where an eventfd fails. */
static int lmq_sync_files(int asked_fd, int done_fd, int64_t *work) {
    for (;;) {
        uint64_t count;
        ssize_t moved;
        int64_t began_ns;
        do moved = read(asked_fd, &count, sizeof count); while (moved < 0 && errno == EINTR);
        if (moved < 0) return -1;
        if (work[LMQ_STOPS]) {
            lmq_end_requests();
            return 0;
        }
        began_ns = lmq_monotonic_ns();
        work[LMQ_ERROR] = 0;
        lmq_begin_beside(work);
        for (int64_t k = 0; k < work[LMQ_COUNT] && !work[LMQ_ERROR]; k++)
            lmq_sync_one((int)work[LMQ_FILES + k], work);
        if (!work[LMQ_HAS_STEPS] && !work[LMQ_ERROR]) lmq_sync_beside(work);
        work[LMQ_TOOK_NS] = lmq_monotonic_ns() - began_ns;
        if (work[LMQ_HAS_STEPS] || work[LMQ_ERROR]) return 1;
        count = 1;
        do moved = write(done_fd, &count, sizeof count); while (moved < 0 && errno == EINTR);
        if (moved < 0) return -1;
    }
}

#endif
