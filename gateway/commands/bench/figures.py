"""What a load counts, and what is told of it."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence

MARK = b"lmqbench"  # begins a body, before the moment at which it was sent
STAMP = struct.Struct(">8sQ")
LATENCIES_MAX = 2_000_000  # that are kept; later ones are counted only


class Tally:
    """What one side of a load did."""

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0
        self.first_s = 0.0
        self.last_s = 0.0
        self.latencies_ns: list[int] = []

    def add(self, count: int, size: int) -> None:
        """Count messages that went or came just now."""
        self.last_s = time.perf_counter()
        if not self.count:
            self.first_s = self.last_s
        self.count += count
        self.bytes += size

    def tell(self, began_s: float) -> dict[str, object]:
        """Return what is told; the time counts from `began_s`, or from the first message where that is 0."""
        took_s = max(self.last_s - (began_s or self.first_s), 1e-9) if self.count else 0.0
        told: dict[str, object] = {
            "messages": self.count,
            "seconds": round(took_s, 3),
            "rate": round(self.count / took_s) if took_s else 0,
            "bytes_rate": round(self.bytes / took_s) if took_s else 0,
        }
        kept = sorted(self.latencies_ns)
        for name, part in (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99), ("max_ms", 1.0)):
            told[name] = None if not kept else percentile_ms(kept, part)
        return told

    def note_latency(self, passed_ns: int) -> None:
        """Keep how long something took."""
        if len(self.latencies_ns) < LATENCIES_MAX:
            self.latencies_ns.append(max(passed_ns, 0))


def percentile_ms(kept: Sequence[int], part: float) -> float:
    """Return what this part of sorted nanoseconds does not pass, in milliseconds."""
    return round(kept[min(int(len(kept) * part), len(kept) - 1)] / 1e6, 3)


def stamp(size: int) -> bytes:
    """Return the first bytes of a body of this size that is sent now; nothing where they do not fit."""
    return STAMP.pack(MARK, time.time_ns()) if size >= STAMP.size else b""


def sent_ns(body: bytes | memoryview) -> int:
    """Return when a body was sent, -1 where it does not say."""
    if len(body) < STAMP.size:
        return -1
    mark, moment = STAMP.unpack_from(body)
    return int(moment) if mark == MARK else -1
