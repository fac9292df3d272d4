"""The state of one connection's input: bytes in, commands and runs of sends out, in their order.

Requests and answers share a connection in both directions and are matched by their opaque number, so this is all the
state that the protocol has.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.rocketmq.send_codec import read_sends
from gateway.rocketmq.send_run import SendRun
from lmq.remoting.commands import Command
from lmq.remoting.frames import FrameInput, Frames
from lmq.remoting.request_codes import RequestCode

CODE_UNSEEN = 0  # the header does not begin with its code
MAYBE_SENDS = frozenset(
    (CODE_UNSEEN, RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
)


class Connection:
    """One peer of the server.

    Args:
        frames: Room for cut frames, as with `FrameInput`.
        run: Room for a run of sends; shared in the same way.
        frame_bytes_max: A longer frame is an error.
        born_host: The peer's address and port, as records store it.
    """

    def __init__(self, frames: Frames, run: SendRun, frame_bytes_max: int, born_host: bytes) -> None:
        self.origin = b""  # encoded properties that say who this peer is
        self._input = FrameInput(frames, frame_bytes_max)
        self._run = run
        self._born_host = born_host
        self._at = 0  # the first frame of the event that came last

    def receive_data(self, data: bytes) -> None:
        """Take bytes of the peer; `events` then tells what they say."""
        self._input.receive_data(data)

    def receive_eof(self) -> bool:
        """The peer sends no more; return whether it stopped in the midst of a frame."""
        return self._input.has_part

    def events(self, uniq_prefix: bytes) -> Iterator[Command | SendRun]:
        """Yield the commands and runs of sends that came, in their order. A run is valid until the next event.

        Whoever stops before the end calls `unread`.

        Args:
            uniq_prefix: The first 28 digits of the keys that we give to messages without one.

        Raises:
            FrameError: The peer sent something that is no frame; the connection cannot go on.
        """
        while self._input.cut():
            yield from self._read_frames(uniq_prefix)

    def unread(self, event: Command | SendRun) -> None:
        """Give back what follows the event that came last, and what a run was cut by; `events` begins with it again."""
        self._input.unread(self._at + (event.count if isinstance(event, SendRun) else 1))

    def _read_frames(self, uniq_prefix: bytes) -> Iterator[Command | SendRun]:
        frames, run = self._input.frames, self._run
        i = 0
        while i < frames.count:
            if frames.code[i] in MAYBE_SENDS:
                run.begin(frames.buf, origin=self.origin, born_host=self._born_host, uniq_prefix=uniq_prefix)
                if read_sends(frames, i, run) > i:
                    self._at = i
                    yield run
                    i += run.count  # which is fewer where it was cut
                    continue
            self._at = i
            yield self._input.decode(i)
            i += 1
