/* The C of gateway/net/socket_calls.pxd: options of a socket that only some systems have. */
#ifndef LMQ_SOCKET_CALLS_H
#define LMQ_SOCKET_CALLS_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static inline void lmq_acknowledge(int fd) {
#ifdef TCP_QUICKACK
    int now = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &now, sizeof now);
#endif
}

#endif
