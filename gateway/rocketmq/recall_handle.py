"""Handles by which clients take back waiting messages: `v1 TOPIC BROKER MOMENT KEY` in Base64, as at official brokers.

Source: docs/protocols/rocketmq.md, "Timed messages".
"""

from __future__ import annotations

from array import array

from core import octets
from gateway.rocketmq.send_run import SendRun, SendTarget

VERSION = b"v1 "
_VERSION = VERSION
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_PADDING = 0x3D
_SPACE = 0x20
_THIRD = 2  # of three bytes, which are four letters


class Handles:
    """The handles of a run's sends.

    Args:
        broker_name: Our name.
        dues: When the message of each send is due, in milliseconds; 0: it does not wait.
    """

    def __init__(self, broker_name: bytes, dues: array[int]) -> None:
        self._broker_name = broker_name
        self.dues = dues

    def measure(self, run: SendRun, i: int) -> int:
        """Return how many bytes the handle of send `i` has, 0 where its message does not wait."""
        return (self._measure_text(run, i) + 2) // 3 * 4 if self.dues[i] else 0

    def write(self, run: SendRun, i: int, out: bytearray | memoryview, pos: int) -> int:
        """Write the handle of send `i`, whose message waits, to `out`; return the position after it."""
        size = self._measure_text(run, i)
        end = pos + (size + 2) // 3 * 4
        at = end - size  # behind what is written, until the last letters of both
        self._write_text(run, i, out, at)
        while at < end:
            second = out[at + 1] if at + 1 < end else 0
            third = out[at + _THIRD] if at + _THIRD < end else 0
            word = out[at] << 16 | second << 8 | third
            out[pos] = _LETTERS[word >> 18]
            out[pos + 1] = _LETTERS[word >> 12 & 0x3F]
            out[pos + 2] = _LETTERS[word >> 6 & 0x3F] if at + 1 < end else _PADDING
            out[pos + 3] = _LETTERS[word & 0x3F] if at + _THIRD < end else _PADDING
            at += 3
            pos += 4
        return pos

    def _measure_text(self, run: SendRun, i: int) -> int:
        target: SendTarget = run.targets[run.batch.route_index[i]]
        size = len(_VERSION) + len(target.topic) + len(self._broker_name) + 4  # a digit, and three spaces
        rest = self.dues[i] // 10
        while rest > 0:
            size += 1
            rest //= 10
        return size + run.uniq_end[i] - run.uniq_start[i]

    def _write_text(self, run: SendRun, i: int, out: bytearray | memoryview, pos: int) -> None:
        target: SendTarget = run.targets[run.batch.route_index[i]]
        pos = _put(out, pos, _VERSION)
        pos = _put_word(out, pos, target.topic)
        pos = _put_word(out, pos, self._broker_name)
        pos = octets.write_decimal(out, pos, self.dues[i])
        out[pos] = _SPACE
        octets.copy_bytes(out, pos + 1, run.extra, run.uniq_start[i], run.uniq_end[i] - run.uniq_start[i])


def _put(out: bytearray | memoryview, pos: int, piece: bytes) -> int:
    octets.copy_bytes(out, pos, piece, 0, len(piece))
    return pos + len(piece)


def _put_word(out: bytearray | memoryview, pos: int, piece: bytes) -> int:
    pos = _put(out, pos, piece)
    out[pos] = _SPACE
    return pos + 1
