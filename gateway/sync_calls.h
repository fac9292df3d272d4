/* The C of gateway/sync_calls.pxd: rounds of syncs that need no interpreter. */
#ifndef LMQ_SYNC_CALLS_H
#define LMQ_SYNC_CALLS_H

#include <errno.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
enum { LMQ_STOPS, LMQ_HAS_STEPS, LMQ_ERROR, LMQ_TOOK_NS, LMQ_COUNT, LMQ_FILES };
static inline int64_t lmq_monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
/* -1 with errno where an eventfd fails. */
static int lmq_sync_files(int asked_fd, int done_fd, int64_t *work) {
    for (;;) {
        uint64_t count;
        ssize_t moved;
        int64_t began_ns;
        do moved = read(asked_fd, &count, sizeof count); while (moved < 0 && errno == EINTR);
        if (moved < 0) return -1;
        if (work[LMQ_STOPS]) return 0;
        began_ns = lmq_monotonic_ns();
        work[LMQ_ERROR] = 0;
        for (int64_t k = 0; k < work[LMQ_COUNT] && !work[LMQ_ERROR]; k++) {
            int result;
            do result = fdatasync((int)work[LMQ_FILES + k]); while (result < 0 && errno == EINTR);
            if (result < 0) work[LMQ_ERROR] = errno;
        }
        work[LMQ_TOOK_NS] = lmq_monotonic_ns() - began_ns;
        if (work[LMQ_HAS_STEPS] || work[LMQ_ERROR]) return 1;
        count = 1;
        do moved = write(done_fd, &count, sizeof count); while (moved < 0 && errno == EINTR);
        if (moved < 0) return -1;
    }
}

#endif
