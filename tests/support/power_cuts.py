"""Histories of a store on a simulated disk: what it said is safe must be there after each power cut."""

from __future__ import annotations

import gc
import os
import random
from pathlib import Path

from core.settings import RetentionSettings, StoreSettings
from tests.support.simulated_disk import LETTER, NAMES, PAGES, SOME, SimulatedDisk
from tests.support.store import NOW_MS, open_store, publish, read_queue, retire

HOUR_MS = 3_600_000
SETTINGS = StoreSettings(
    segment_bytes=64 * 1024,
    inline_dispatch_bytes=200,
    message_bytes_max=40_000,
    segments_mapped_max=2,
    retention=RetentionSettings(age_hours=1),
)
QUEUES = [b"%%LMQ%%q%02d" % k for k in range(12)]
KEYS = [b"T/0", *QUEUES]
STEPS = 60


class History:
    """One store's life in several processes, some of which end by a power cut."""

    def __init__(self, seed: int, root: Path) -> None:
        self.rng = random.Random(seed)
        self.root = root
        self.now_ms = NOW_MS
        self.lives = 0
        self.numbers = 0
        self.units = []  # offset and body in the topic's queue of what is there together
        self.held = {key: {} for key in KEYS}  # what each queue holds, by offset
        self.safe = {key: {} for key in KEYS}  # of that, what was said to be safe
        self.gone = dict.fromkeys(KEYS, 0)  # what is before this may be gone
        self.disk = self.next_disk()

    def next_disk(self) -> SimulatedDisk:
        self.lives += 1
        folder = self.root / str(self.lives)
        if not folder.exists():
            folder.mkdir()
        return SimulatedDisk(folder)

    def run(self) -> None:
        for _ in range(4):
            with self.disk.watching():
                self.live()
                if self.rng.random() < 0.5:
                    self.begin_unit()
            self.disk.cut(self.rng, self.rng.choice((LETTER, SOME, NAMES, PAGES)), self.root / str(self.lives + 1))
            self.end_process()
            self.disk = self.next_disk()
        with self.disk.watching():
            self.open()
            self.store.close()

    def open(self) -> None:
        self.store = open_store(self.disk.root / "data", SETTINGS, self.now_ms)
        for key in KEYS:
            queue_ref = self.store.intern_queue(key)
            first = self.store.min_offset(queue_ref)
            found = dict(read_queue(self.store, key, first))
            for offset, body in self.safe[key].items():
                assert found.get(offset) == body or offset < self.gone[key], (key, offset)
            for offset, body in found.items():
                assert self.held[key].get(offset) == body, (key, offset)
            assert self.store.max_offset(queue_ref) >= max(self.safe[key], default=-1) + 1, key
            self.held[key] = found
            self.safe[key] = dict(found)
        self.check_units()

    def check_units(self) -> None:
        """Each unit is there whole or not at all, but for what retention may have taken of its beginning."""
        found = self.held[b"T/0"]
        kept = [[one for one in unit if one[0] >= self.gone[b"T/0"]] for unit in self.units]
        for unit in kept:
            there = [found.get(offset) == body for offset, body in unit]
            assert all(there) or not any(there), unit
        self.units = [unit for unit in kept if unit and found.get(unit[0][0]) == unit[0][1]]

    def live(self) -> None:
        self.open()
        steps = [self.publish] * 6 + [self.flush] * 3 + [self.overlap] * 2 + [self.prepare] * 2
        steps += [self.retire, self.reopen, self.be_killed]
        for _ in range(self.rng.randrange(STEPS)):
            self.rng.choice(steps)()

    def publish(self) -> None:
        self.now_ms += 1000
        if self.rng.random() < 0.3:
            self.begin_unit()
            self.store.keep_together(False)
        else:
            self.publish_some([])

    def begin_unit(self) -> None:
        """Publish what is there whole or not at all, and do not end it yet."""
        self.store.keep_together(True)
        self.units.append([])
        self.publish_some(self.units[-1])

    def publish_some(self, unit: list[tuple[int, bytes]]) -> None:
        for _ in range(self.rng.choice((1, 1, 3, 20))):
            names = self.rng.sample(QUEUES, self.rng.choice((0, 1, 2, 12)))
            size = self.rng.choice((10, 300, 5_000, 30_000))
            self.numbers += 1
            body = (b"%d." % self.numbers * size)[:size] + b"%d" % self.numbers
            route = self.store.make_route(b"T", 0, b"", names)
            offsets = {key: self.store.max_offset(self.store.intern_queue(key)) for key in (b"T/0", *names)}
            publish(self.store, route, body, now_ms=self.now_ms)
            unit.append((offsets[b"T/0"], body))
            for key, offset in offsets.items():
                assert offset not in self.held[key]
                self.held[key][offset] = body

    def note_safe(self, held: dict[bytes, dict[int, bytes]]) -> None:
        for key in KEYS:
            self.safe[key].update(held[key])

    def copy(self) -> dict[bytes, dict[int, bytes]]:
        return {key: dict(bodies) for key, bodies in self.held.items()}

    def flush(self) -> None:
        self.store.flush()
        self.note_safe(self.held)

    def overlap(self) -> None:
        """Go on publishing while a flush is under way."""
        flush = self.store.begin_flush(is_all=self.rng.random() < 0.5)
        held = self.copy()
        self.publish()
        flush.run()
        if self.rng.random() < 0.3:
            self.publish()
        self.store.end_flush()
        self.note_safe(held)

    def prepare(self) -> None:
        self.store.prepare()

    def retire(self) -> None:
        self.now_ms += self.rng.choice((0, 1, 2)) * HOUR_MS
        retire(self.store, self.now_ms)
        for key in KEYS:
            self.gone[key] = max(self.gone[key], self.store.min_offset(self.store.find_queue(key)))

    def reopen(self) -> None:
        self.store.close()
        self.note_safe(self.held)
        self.open()

    def be_killed(self) -> None:
        """Let another process take over this one's folder, with everything that it wrote."""
        held = self.copy()
        if self.rng.random() < 0.5:
            self.begin_unit()
        self.end_process()
        self.open()
        for key in KEYS:
            assert self.held[key].keys() >= self.safe[key].keys()
            assert self.held[key].keys() <= held[key].keys()  # nothing of the unit
            assert all(offset in self.held[key] for offset in held[key] if offset >= self.gone[key])

    def end_process(self) -> None:
        """Let go of the lock, and of the store without a word to it."""
        data_dir = self.disk.root / "data"
        left = {str(data_dir / name) for name in ("lock", "index/queues", "index/queues.copy")}
        for link in list(Path("/proc/self/fd").iterdir()):
            if link.is_symlink() and str(link.readlink()) in left:
                os.close(int(link.name))
        del self.store
        gc.collect()
