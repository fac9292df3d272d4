"""The state machine of one RocketMQ connection: bytes in, commands and runs of sends out, in their order; and silence.

Requests and answers share a connection in both directions and are matched by their opaque number, so this is all the
state that the protocol has: there is no handshake, and no table of states.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.rocketmq.errors import PeerSilentError
from gateway.rocketmq.send_codec import read_sends
from gateway.rocketmq.send_run import RunPool, SendRun
from gateway.rocketmq.uniq_key import UniqPrefix
from lmq.remoting.commands import Command, encode_command
from lmq.remoting.frames import FrameInput, Frames
from lmq.remoting.request_codes import RequestCode

CODE_UNSEEN = 0  # the header does not begin with its code
MAYBE_SENDS = frozenset(
    (CODE_UNSEEN, RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
)
Event = Command | SendRun


class FramePool:
    """Room for cut frames that no connection needs now: one, as mostly each is done with its frames in one go."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._free: Frames | None = None

    def take(self) -> Frames:
        """Return room for the frames of a connection."""
        free, self._free = self._free, None
        return Frames(self._capacity) if free is None else free

    def give_back(self, frames: Frames) -> None:
        """Take room back in which no frames lie any more."""
        self._free = frames


class Limits:
    """What a door's connections bear; `idle_timeout_ms` may change for those that are open."""

    def __init__(self, frame_bytes_max: int, idle_timeout_ms: int) -> None:
        self.frame_bytes_max = frame_bytes_max  # a longer frame is an error
        self.idle_timeout_ms = idle_timeout_ms  # of silence


class Connection:
    """One peer of the server.

    Args:
        frames: Where frames are cut; shared by all connections of a door.
        runs: Where runs of sends are read; shared in the same way.
        limits: What to bear.
        uniq: The keys that messages without one are given.
        born_host: The peer's address and port, as records store it.
    """

    def __init__(self, frames: FramePool, runs: RunPool, limits: Limits, uniq: UniqPrefix, born_host: bytes) -> None:
        self.origin = b""  # encoded properties that say who this peer is
        self._frame_pool = frames
        self._runs = runs
        self._limits = limits
        self._uniq = uniq
        self._born_host = born_host
        self._frames: Frames | None = None  # what was cut, while events of it are to come
        frames_now = frames.take()
        self._input = FrameInput(frames_now, limits.frame_bytes_max)
        frames.give_back(frames_now)
        self._next = 0  # of the frames that were cut, the first that no event was made of
        self._at = 0  # the first frame of the event that came last
        self._now_ms = 0
        self._uniq_prefix = b""  # of now, once it was asked for
        self._idle_until_ms = 0  # at once: then it is known what time it is
        self._is_over = False
        self._out: list[bytes] = []

    # In

    def receive_data(self, data: bytes, now_ms: int) -> None:
        """Take bytes of the peer; `events` then tells what they say."""
        self.take_up(now_ms)
        self._input.receive_data(data)

    def take_up(self, now_ms: int) -> None:
        """Go on with what came before, or with a pull that waits here: the peer was not silent."""
        self._now_ms = now_ms
        self._uniq_prefix = b""
        self._idle_until_ms = now_ms + self._limits.idle_timeout_ms

    def receive_eof(self) -> None:
        """Take note that the peer sends no more."""
        self._is_over = True

    def handle_timer(self, now_ms: int) -> None:
        """Check that the peer is not silent for too long.

        Raises:
            PeerSilentError: It is.
        """
        if not self._idle_until_ms:
            self.take_up(now_ms)
        elif self._idle_until_ms <= now_ms:
            raise PeerSilentError("idle for too long")

    # Out

    def events(self) -> Iterator[Event]:
        """Return the commands and runs of sends that came, in their order; it goes on where more comes.

        Raises:
            FrameError: The peer sent something that is no frame; the connection cannot go on.
        """
        return self

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        if not self._has_frames():
            raise StopIteration
        frames = self._input.frames
        i = self._next
        self._at = i
        if frames.code[i] in MAYBE_SENDS:
            run = self._runs.show()
            self.begin(run, frames.buf)
            self._next = read_sends(frames, i, run)
            if self._next > i:
                self._runs.take()
                return run
        self._next = i + 1
        return self._input.decode(i)

    def _has_frames(self) -> bool:
        """Cut more frames where none are left; return whether there are any."""
        frames = self._frames
        if self._is_over:
            return False
        if frames is None:
            frames = self._input.frames = self._frame_pool.take()
        elif self._next < frames.count:
            return True
        self._next = 0
        if self._input.cut():
            self._frames = frames
            return True
        self._frames = None
        self._frame_pool.give_back(frames)
        return False

    def begin(self, run: SendRun, buf: bytes | bytearray | memoryview) -> None:
        """Begin a run of this peer's sends, whose frames lie in `buf`."""
        if not self._uniq_prefix:
            self._uniq_prefix = self._uniq.at(self._now_ms)
        run.begin(buf, origin=self.origin, born_host=self._born_host, uniq_prefix=self._uniq_prefix)

    def unread(self, run: SendRun) -> None:
        """Give back what the last event's run has no more, because it was cut; it comes as the next event."""
        self._next = self._at + run.count

    def data_to_send(self) -> bytes:
        """Return the answers that are to be sent, each once."""
        if not self._out:
            return b""
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        return data

    def next_deadline_ms(self) -> int | None:
        """Return when `handle_timer` is due."""
        return self._idle_until_ms

    # What the handler says

    def answer(self, request: Command, response: Command) -> None:
        """Put the answer to a request into what is to be sent, if the peer wants one."""
        if not request.is_one_way:
            self._out.append(encode_command(response))
