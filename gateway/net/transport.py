"""The asyncio skin of one connection: bytes, flow control, deadlines; and the guard around its handler."""

from __future__ import annotations

import asyncio
import logging
from typing import cast

from gateway.address import UNIX_HOST, UNKNOWN_HOST, format_address, pack_host
from gateway.net.endpoint import Endpoint
from gateway.net.protocol import ConnectionHandler, Transport
from gateway.net.streams.plain import PlainStream, fileno_of, has_unread, peer_of

LOGGER = logging.getLogger(__name__)

HIGH_WATER_BYTES = 256 * 1024  # a slow reader holds no more memory: what comes after it waits in the log
LOW_WATER_BYTES = 64 * 1024  # a quarter, so that reading goes on before the socket has nothing to send
LOOPBACK = "127.0.0.1"
UNREAD_BYTES_MAX = 1024 * 1024  # of answers that the peer does not read; while more wait nothing is read from it
LINGER_MS = 5_000  # a peer that reads nothing is not waited for longer when we close, nor one that sends no more


class SocketTransport(Transport):
    """One connection. By its methods also an `asyncio.Protocol`, for the loop."""

    __slots__ = (
        "_close_until_ms", "_counted_host", "_end_until_ms", "_endpoint", "_handler", "_has_ended", "_has_more",
        "_held", "_is_full", "_is_held_back", "_is_known", "_is_read", "_is_reading", "_is_waiting",
        "_lost_reason", "_socket", "_stream", "_untaken", "_watched_at", "timer_slot",
    )  # fmt: skip

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._handler: ConnectionHandler | None = None
        self._socket: asyncio.Transport | None = None
        self._stream: PlainStream | None = None  # what sends by it
        self._counted_host = ""  # that the limits know it by
        self._close_until_ms = 0  # not 0: closing, aborted at that moment
        self._end_until_ms = 0  # not 0: the peer sends no more; the handler has until then to close
        self._held = b""  # what a newcomer said first, until it is admitted
        self._is_known = False  # it has said something
        self._untaken = b""  # what was read and the handler was not given yet
        self._has_more = False  # the handler left some of what it was given
        self._has_ended = False  # the peer sends no more, and the handler was not told yet
        self._lost_reason = ""  # not empty: the socket is gone, and the handler was not told yet
        self._is_waiting = False  # for its share of a turn
        self._is_reading = True  # the handler takes bytes
        self._is_held_back = False  # nothing is taken, paused or not
        self._is_full = False  # more answers wait than the peer may leave unread: nothing is taken
        self._is_read = True  # the loop reads the socket
        self._watched_at = -1  # the timer's tick at which it was told of us
        self.peer_host = UNKNOWN_HOST
        self.timer_slot = -1

    @property
    def door(self) -> str:
        """The name of the door that the connection came in by."""
        return self._endpoint.name

    @property
    def local_address(self) -> tuple[str, int]:
        """The host and port that the peer reached us at."""
        name = self._socket.get_extra_info("sockname") if self._socket is not None else None
        return (str(name[0]), int(name[1])) if isinstance(name, tuple) else ("", 0)

    # The loop calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let the connection in, or turn it away when there are too many."""
        endpoint = self._endpoint
        self._socket = sock = cast("asyncio.Transport", transport)
        host, port = peer_of(sock)
        if not self._enter(host):
            self._socket = None
            sock.abort()
            return
        self.conn_id, self.ways = endpoint.table.next_id(), endpoint.ways
        self.since_ms = endpoint.clock.now_ms()
        self.peer = format_address(host or UNIX_HOST, port)
        self.peer_host = pack_host(host or LOOPBACK, port)
        self._stream = PlainStream(sock)
        sock.set_write_buffer_limits(HIGH_WATER_BYTES, LOW_WATER_BYTES)
        endpoint.table.add(self)
        endpoint.connections += 1
        self._begin(host)

    def _enter(self, host: str) -> bool:
        """Return whether the limits let it in, by its host, or let it stay until it is told why not."""
        self._counted_host = host
        self.refusal = self._endpoint.find_refusal(host)
        self.shared = self._endpoint.paces.find(host)
        return not self.refusal or self._endpoint.may_tell()

    def _begin(self, host: str) -> None:
        """Have the door answer the peer, whose host is `host`, as soon as its bytes can reach the handler: now."""
        del host
        self._connect()

    def _connect(self) -> None:
        endpoint = self._endpoint
        connect = endpoint.connect
        if self.refusal and endpoint.turn_away is not None:
            connect = endpoint.turn_away
        else:
            endpoint.tell_connected(self)
        try:
            self._handler = connect(self)
        except Exception as error:
            self._fail(error)
            return
        endpoint.timer.watch(self)

    def data_received(self, data: bytes) -> None:
        """Hand the bytes to the handler; the clock is read here, once."""
        self.bytes_in += len(data)
        if not self._is_open():
            return
        endpoint = self._endpoint
        shares = endpoint.shares
        if not self._is_known:
            self._is_known = True
            if not endpoint.admission.may_enter(self):
                self._held = data
                self.pause_reading()
                return
        if self._is_waiting or not shares.may_read():
            self._untaken += data
            self._wait()
            return
        self._work(data)
        stream = self._stream
        if stream is not None and not self._close_until_ms:
            stream.acknowledge()
        timer = endpoint.timer
        if self._watched_at != timer.tick:
            self._watched_at = timer.tick
            timer.watch_soon(self)

    def _work(self, data: bytes) -> None:
        """Let the handler work for a share: with `data`, or without any go on with what it left."""
        shares, turns = self._endpoint.shares, self._endpoint.turns
        now_ms = turns.begin_read(len(data))
        shares.begin(self)
        try:
            self._has_more = self._take(data, now_ms)
        except Exception as error:
            self._has_more = False
            self._fail(error)
        if shares.end(self) or self._has_more:
            self._wait()

    def _take(self, data: bytes, now_ms: int) -> bool:
        """Give the handler the socket's bytes, or have it go on without any; return whether it left something."""
        handler = self._handler
        assert handler is not None
        return handler.on_data(data, now_ms) if data else handler.go_on(now_ms)

    def _wait(self) -> None:
        """Go on in another turn, and read nothing before."""
        if not self._is_waiting and self._is_open():
            self._is_waiting = True
            self._endpoint.shares.wait(self)
        self._set_read()

    def go_on(self) -> None:
        """Work for a share of this turn; called by the loop's `Shares`."""
        self._is_waiting = False
        if self._lost_reason:
            self._forget()
            return
        if self._has_ended:
            self._tell_end()
        if not self._is_open():
            return
        if self._may_take():  # else it goes on when it may
            if self._has_more:
                self._work(b"")
            elif self._untaken:
                data, self._untaken = self._untaken, b""
                self._work(data)
        self._set_read()

    def _set_read(self) -> None:
        """Have the loop read the socket or not: not while anything of it still waits for the handler."""
        if self._socket is None or self._is_ending():
            return
        is_read = self._may_take() and not self._is_waiting and not self._has_left()
        if is_read != self._is_read:
            self._is_read = is_read
            if is_read:
                self._socket.resume_reading()
            else:
                self._socket.pause_reading()

    def _is_open(self) -> bool:
        """Return whether the peer's bytes count."""
        return self._handler is not None and not self._close_until_ms

    def _may_take(self) -> bool:
        """Return whether the handler may be given bytes."""
        return self._is_reading and not self._is_held_back and not self._is_full

    def _has_left(self) -> bool:
        """Return whether the handler is not through with what was read."""
        return self._has_more or len(self._untaken) > 0

    def admit(self) -> None:
        """Handle what was held; nothing more was read meanwhile."""
        data, self._held = self._held, b""
        self.resume_reading()
        self.data_received(data)

    def eof_received(self) -> bool:
        """Tell the handler, in a turn that has room; it closes once it has answered. True while that is to come."""
        if self._handler is None or self._is_ending():
            return False
        self._has_ended = True
        if self._endpoint.shares.may_read():
            self._tell_end()
        else:
            self._wait()
        return self._close_until_ms == 0

    def _tell_end(self) -> None:
        handler, shares = self._handler, self._endpoint.shares
        self._has_ended = False
        if handler is None or self._is_ending():
            return
        began_ns, now_ms = shares.begin_aside(), self._endpoint.clock.now_ms()
        self._end_until_ms = now_ms + LINGER_MS
        try:
            handler.on_eof(now_ms)
        except Exception as error:
            self._fail(error)
        if not self._close_until_ms:
            self._endpoint.timer.watch(self)
        shares.end_aside(began_ns)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the handler, once, and forget the connection: in this turn or, where it is full, in a later one."""
        if self._socket is None:
            return
        self._lost_reason = self.end_reason or (f"connection lost: {exc}" if exc is not None else "closed by the peer")
        self._socket = None
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.lose()
        self.is_writable = False
        endpoint = self._endpoint
        endpoint.release(self._counted_host, self.refusal)  # at once: the peer's next connection may be here already
        if endpoint.shares.may_read():
            self._forget()
        elif not self._is_waiting:
            self._is_waiting = True
            endpoint.shares.wait(self)

    def _forget(self) -> None:
        endpoint = self._endpoint
        began_ns = endpoint.shares.begin_aside()
        reason, self._lost_reason = self._lost_reason, ""
        handler, self._handler = self._handler, None
        endpoint.table.discard(self)
        if handler is not None:
            try:
                handler.on_closed(endpoint.clock.now_ms())
            except Exception:
                LOGGER.exception("closing failed conn=%d peer=%s", self.conn_id, self.peer)
        self._tell_lost(reason)
        endpoint.shares.end_aside(began_ns)

    def _tell_lost(self, reason: str) -> None:
        if not self.refusal:  # which was said
            self._endpoint.tell_lost(self, reason)

    def pause_writing(self) -> None:
        """The output passed the high water mark."""
        self.is_writable = False

    def resume_writing(self) -> None:
        """The output fell under the low water mark."""
        self.is_writable = True
        if self._is_full:
            self._is_full = False
            self._read_on()
        if self._handler is not None and not self._close_until_ms:
            try:
                self._handler.on_writable(self._endpoint.clock.now_ms())
            except Exception as error:
                self._fail(error)
                return
            self._endpoint.timer.watch(self)

    # The timer calls these.

    def next_deadline_ms(self) -> int | None:
        """Return the handler's deadline, or when to stop waiting for a slow peer while closing."""
        until_ms = self._close_until_ms or self._end_until_ms
        if until_ms:
            return until_ms if self._socket is not None else None
        if self._handler is None or self._held:  # a client that waits for us is not late
            return None
        return self._handler.next_deadline_ms()

    def on_deadline(self, now_ms: int) -> None:
        """Run the handler's timer, or abort a close that takes too long."""
        if self._is_ending():
            self.abort()
        elif self._handler is not None:
            try:
                self._handler.on_timer(now_ms)
            except Exception as error:
                self._fail(error)

    # The handler calls these.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send `data` at once, and by the loop what the socket does not take now: `bytes` are kept, else a copy is."""
        stream = self._stream
        if stream is None or self._close_until_ms:
            return
        self.bytes_out += len(data)
        if not stream.write(data) and not self._is_full and stream.waiting_bytes() > UNREAD_BYTES_MAX:
            self._is_full = True
            self._set_read()

    def close(self) -> None:
        """Send what was written, for 5 s at most, then close."""
        if self._socket is not None and not self._close_until_ms:
            self._say_end()
            self._close_until_ms = self._end_until_ms or self._endpoint.clock.now_ms() + LINGER_MS
            self._socket.close()
            self._endpoint.timer.watch(self)

    def finish(self) -> None:
        """Send what was written and end our half; drop what comes until the peer ends its own, for 5 s at most."""
        sock = self._socket
        if sock is None or self._close_until_ms:
            return
        if self._end_until_ms or not sock.can_write_eof():
            self.close()
            return
        if not self._is_read:
            sock.resume_reading()
        self._say_end()
        self._close_until_ms = self._endpoint.clock.now_ms() + LINGER_MS
        sock.write_eof()
        self._endpoint.timer.watch(self)

    def part(self) -> None:
        """Close, as `finish` does where the peer sent what nobody has read yet."""
        is_read = self._socket is None or not has_unread(self._socket)
        self.close() if is_read else self.finish()

    def _say_end(self) -> None:
        """Tell the peer that nothing more is sent, where more than the end of the bytes says so."""

    def abort(self) -> None:
        """Close now."""
        if self._socket is not None:
            self._close_until_ms = self._close_until_ms or self._endpoint.clock.now_ms()
            self._socket.abort()

    def is_share_over(self) -> bool:
        """Return whether others are to have their turn."""
        return self._is_full or self._endpoint.shares.is_over()

    def request_turn(self) -> None:
        """Have the handler go on in a turn, though nothing came."""
        self._has_more = True
        self._wait()

    def pause_reading(self) -> None:
        """Take no more bytes until `resume_reading`."""
        if not self._is_ending():
            self._is_reading = False
            self._set_read()

    def resume_reading(self) -> None:
        """Take bytes again."""
        if not self._is_ending():
            self._is_reading = True
            self._read_on()

    def hold_reading(self) -> None:
        """Take no more bytes until `release_reading`."""
        if not self._is_ending():
            self._is_held_back = True
            self._set_read()

    def release_reading(self) -> None:
        """Take bytes again, unless reading is paused."""
        if not self._is_ending():
            self._is_held_back = False
            self._read_on()

    def _read_on(self) -> None:
        """Go on with what was read before, then read again; neither while something else is against it."""
        if self._has_left() and self._may_take():
            self._wait()
        else:
            self._set_read()

    def _is_ending(self) -> bool:
        """Return whether nothing more may be read: a socket that is read again after its end ends again."""
        return self._close_until_ms != 0 or self._end_until_ms != 0

    def fileno(self) -> int:
        """Return the number of the socket, -1 where it is closed."""
        return -1 if self._socket is None else fileno_of(self._socket)

    def deadline_changed(self) -> None:
        """File the connection under its present deadline."""
        self._endpoint.timer.watch(self)

    def _fail(self, error: Exception) -> None:
        said = "aborting connection: its handler failed door=%s conn=%d peer=%s"
        LOGGER.error(said, self.door, self.conn_id, self.peer, exc_info=error)
        self.end_reason = "its handler failed"
        self.abort()
