"""The state machine of one RocketMQ connection: bytes in, commands and runs of sends out, in their order; and silence.

Requests and answers share a connection in both directions and are matched by their opaque number. Which user a
connection is of, its requests tell: `gateway/rocketmq/states.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.rocketmq.errors import PeerSilentError
from gateway.rocketmq.send_codec import read_sends
from gateway.rocketmq.send_run import RunPool, SendRun
from gateway.rocketmq.states import State, Step, follow
from gateway.rocketmq.uniq_key import UniqPrefix
from lmq.remoting.commands import Command, encode_command
from lmq.remoting.errors import FrameError
from lmq.remoting.frames import FrameInput, Frames
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.signature import is_signed_with

CODE_UNSEEN = 0  # the header does not begin with its code
MAYBE_SENDS = frozenset(
    (CODE_UNSEEN, RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
)
PROVEN_MAX = 64  # sends of a run whose signatures are looked at: about 10 us each
_PROVEN_MAX = PROVEN_MAX
_NEW = int(State.NEW)
_LOGIN = int(State.LOGIN)
_OPEN = int(State.OPEN)


class Login:
    """A request of a user that the connection is not known to be of; it comes as an event if the handler accepts it."""

    __slots__ = ("request",)

    def __init__(self, request: Command) -> None:
        self.request = request


Event = Command | SendRun | Login


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

    After a `Login` nothing comes until `accept` or `refuse`: what came with it and after it waits.

    Args:
        frames: Where frames are cut; shared by all connections of a door.
        runs: Where runs of sends are read; shared in the same way.
        limits: What to bear.
        uniq: The keys that messages without one are given.
        born_host: The peer's address and port, as records store it.
    """

    def __init__(self, frames: FramePool, runs: RunPool, limits: Limits, uniq: UniqPrefix, born_host: bytes) -> None:
        self.origin = b""  # encoded properties that name this peer
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
        self.state = _NEW  # a `State`
        self._secret = b""  # what requests are signed with, empty: they need not be
        self._proven = 0  # of the frames that were cut, those before it are signed
        self._refused = 0  # of the frames that are cut next, those not to be told of again
        self._late = b""  # came while a login was waited for
        self._out: list[bytes] = []

    # In

    def receive_data(self, data: bytes, now_ms: int) -> None:
        """Take bytes of the peer; `events` then tells what they say."""
        self.take_up(now_ms)
        if self.state == _LOGIN or self._late:
            self._late += data
        else:
            self._input.receive_data(data)

    def take_up(self, now_ms: int) -> None:
        """Go on with what came before, or with a pull that waits here: the peer was not silent."""
        self._now_ms = now_ms
        self._uniq_prefix = b""
        self._idle_until_ms = now_ms + self._limits.idle_timeout_ms

    def receive_eof(self) -> None:
        """Take note that the peer sends no more."""
        self.stop()

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
        if self.state == _NEW:
            return self._ask(i, Step.REQUEST)
        if self._secret and not self._prove(i):
            return self._ask(i, Step.OTHER)
        if frames.code[i] in MAYBE_SENDS:
            run = self._runs.show()
            self.begin(run, frames.buf)
            count = frames.count
            if self._secret:
                frames.count = self._proven
            self._next = read_sends(frames, i, run)
            frames.count = count
            if self._next > i:
                self._runs.take()
                return run
        self._next = i + 1
        return self._input.decode(i)

    def _has_frames(self) -> bool:
        """Cut more frames where none are left; return whether there are any."""
        frames = self._frames
        if self.state == _LOGIN or self.state > _OPEN:
            return False
        if frames is None:
            frames = self._input.frames = self._frame_pool.take()
        elif self._next < frames.count:
            return True
        self._proven = 0
        while True:
            self._next = self._refused
            if self._input.cut():
                self._refused = 0
                if self._next < frames.count:
                    self._frames = frames
                    return True
            elif not self._late:
                self._frames = None
                self._frame_pool.give_back(frames)
                return False
            else:
                late, self._late = self._late, b""
                self._input.receive_data(late)

    def _prove(self, i: int) -> bool:
        """Look at the signatures of frame `i` and of sends behind it; return whether that of `i` is the user's."""
        frames = self._input.frames
        end = min(frames.count, i + _PROVEN_MAX)
        at = max(i, self._proven)
        while at < end and (at == i or frames.code[at] in MAYBE_SENDS):
            try:
                request = self._input.decode(at)
            except FrameError:
                if at == i:
                    raise
                break  # those before it are answered before this one costs the connection
            if not request.is_response and not is_signed_with(request, self._secret):
                break
            at += 1
        self._proven = at
        return at > i

    def _ask(self, i: int, step: Step) -> Event:
        """Return frame `i` as a login. It and the frames behind it are cut again afterwards; none is kept meanwhile."""
        request = self._input.decode(i)
        if request.is_response:
            self._next = i + 1
            return request
        self.state = follow(self.state, step)
        frames, self._frames = self._input.frames, None
        self._input.unread(i)
        self._frame_pool.give_back(frames)
        return Login(request)

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

    def accept(self, secret: bytes = b"") -> None:
        """The login's request is whose it says, and comes now; so do others signed with `secret`, empty: all others."""
        self.state = follow(self.state, Step.ACCEPT)
        self._secret = secret

    def refuse(self) -> None:
        """It is not, and does not come; the next request is a login again."""
        self.state = follow(self.state, Step.REFUSE)
        self._refused = 1
        self._secret = b""

    def stop(self) -> None:
        """Nothing more comes."""
        self.state = follow(self.state, Step.STOP)

    def answer(self, request: Command, response: Command) -> None:
        """Put the answer to a request into what is to be sent, if the peer wants one."""
        if not request.is_one_way:
            self._out.append(encode_command(response))
