"""The parts of a connection: what a front gives, what it gets, and the state machine between bytes and its handler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

from gateway.pacing import ALONE
from gateway.settings.way_names import Ways

Event_co = TypeVar("Event_co", covariant=True)


class ConnectionHandler:
    """One connection as its front sees it. Every call brings the moment of the loop's turn as `now_ms`.

    An exception that leaves a handler costs this connection only: it is logged and the connection is aborted.
    """

    __slots__ = ()

    def on_data(self, data: bytes, now_ms: int) -> bool:
        """Bytes arrived; `data` belongs to the handler from now on.

        Returns:
            Whether work is left, because the transport's share of the turn is over: `go_on` comes before more bytes.
        """
        raise NotImplementedError

    def go_on(self, now_ms: int) -> bool:
        """Go on with what `on_data` left; return the same. The peer is not silent: what it sent waited here."""
        raise NotImplementedError

    def on_eof(self, now_ms: int) -> None:
        """The peer sends no more, and may still read: answer what came and `close`, which is done for you after 5 s."""
        raise NotImplementedError

    def on_writable(self, now_ms: int) -> None:
        """The output fell under the low water mark after it had been over the high one."""
        raise NotImplementedError

    def on_closed(self, now_ms: int) -> None:
        """The connection is gone; called once, whatever the cause, and nothing is called after it."""
        raise NotImplementedError

    def on_timer(self, now_ms: int) -> None:
        """The deadline has passed, by at most half a second."""
        raise NotImplementedError

    def next_deadline_ms(self) -> int | None:
        """Return the moment that `on_timer` is wanted at; asked within a quarter of a second after other calls."""
        raise NotImplementedError


class Transport:
    """One connection as the front's output.

    `peer_host` is the address (4 or 16 bytes) and the port (4 bytes, big endian), as a record stores it; `peer_name`
    is the user that the peer's certificate proves, `peer_client` its client identifier, each empty where it proves
    none; `peer_certificate` is that certificate, in DER. While more than 256 KiB wait to be sent `is_writable` is
    False: a front reads nothing more for this connection until `on_writable`. While more than 1 MiB waits the front is
    given nothing and `is_share_over` is True: what the peer does not read cannot grow.
    `end_reason` is for the log: a front that closes says why, and nothing where the peer did. `refusal` says why a peer
    may not come in, and is mostly empty. `ways` are the authenticators that count where it came, None: all. `shared`
    are rates that it shares with others. The peer came at
    `since_ms`; `bytes_in` and `bytes_out` count what was read from the socket and what was written to it.
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "conn_id",
        "end_reason",
        "is_writable",
        "peer",
        "peer_certificate",
        "peer_client",
        "peer_host",
        "peer_name",
        "refusal",
        "shared",
        "since_ms",
        "ways",
    )

    def __init__(self) -> None:
        self.conn_id = 0
        self.end_reason = ""
        self.peer = ""
        self.peer_certificate = b""
        self.peer_client = ""
        self.peer_host = b""
        self.peer_name = ""
        self.refusal = ""
        self.shared = ALONE
        self.is_writable = True
        self.since_ms = 0
        self.ways: Ways = None
        self.bytes_in = 0
        self.bytes_out = 0

    @property
    def local_address(self) -> tuple[str, int]:
        """The host and port that the peer reached us at."""
        raise NotImplementedError

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send `data`, in order; silent when the connection is closing.

        `bytes` are kept until sent and not copied; anything else may be used again after the call.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Send what was written, for 5 s at most, then close; the handler gets no more data."""
        raise NotImplementedError

    def finish(self) -> None:
        """Send what was written and end our half; drop what comes until the peer ends its own, for 5 s at most.

        Where the peer is still sending, `close` resets the connection and may lose what was written; this does not.
        """
        raise NotImplementedError

    def part(self) -> None:
        """Close, as `finish` does where the peer sent what nobody has read yet."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close now and drop what was not sent."""
        raise NotImplementedError

    def is_share_over(self) -> bool:
        """Return whether others are to have their turn: then the handler leaves the rest of its work for `go_on`."""
        return False

    def request_turn(self) -> None:
        """Have the handler `go_on` in a turn: there is work for the connection though nothing came."""
        raise NotImplementedError

    def pause_reading(self) -> None:
        """Take no more bytes from the peer, and do not `go_on`, until `resume_reading`."""
        raise NotImplementedError

    def resume_reading(self) -> None:
        """Take bytes again."""
        raise NotImplementedError

    def hold_reading(self) -> None:
        """Take no more bytes from the peer until `release_reading`, whatever `resume_reading` says."""
        raise NotImplementedError

    def release_reading(self) -> None:
        """Take bytes again, unless reading is paused."""
        raise NotImplementedError

    def fileno(self) -> int:
        """Return the number of the socket, -1 where it is closed."""
        raise NotImplementedError

    def deadline_changed(self) -> None:
        """Ask the handler for its next deadline, after it changed outside the `on_*` calls."""
        raise NotImplementedError


HandlerFactory = Callable[[Transport], ConnectionHandler]


@runtime_checkable
class StateMachine(Protocol[Event_co]):
    """What is between a connection's bytes and its handler, of every protocol: no I/O, no broker, time is an argument.

    A peer that breaks a rule of its protocol has it raise the protocol's own error, or report it as an event.
    """

    def receive_data(self, data: bytes, now_ms: int) -> None:
        """Take what the socket gave; the events of earlier bytes were all taken, or wait for their turn here."""

    def receive_eof(self) -> None:
        """The peer sends no more: there are no more events."""

    def handle_timer(self, now_ms: int) -> None:
        """Check that the peer is not overdue, which raises; harmless before the deadline."""

    def events(self) -> Iterator[Event_co]:
        """Return what came, in the order of the bytes; it ends where they are used up, and goes on where more come."""

    def data_to_send(self) -> bytes:
        """Return what the connection itself has to say, each byte once."""

    def next_deadline_ms(self) -> int | None:
        """Return when `handle_timer` is due, None for never; 0 where it is not known yet what time it is."""
