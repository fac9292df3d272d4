"""A machine that fails inside one append: any part of what it wrote may have reached the disk, in any order.

What the append changed is compared page by page with what was synced before. Of each page the disk has the old bytes,
the new ones, or the new ones up to or from some byte on; the last files that the append made may be missing.
Whatever it is, the store that opens the folder has all that was confirmed, has each message in all of its queues or in
none, and numbers on without a twin.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from core.settings import StoreSettings
from tests.support.files import memory_folder
from tests.support.store import NOW_MS, make_batch, open_store, read_queue

SETTINGS = StoreSettings(segment_bytes=64 * 1024, inline_dispatch_bytes=8_000, segments_mapped_max=2)
QUEUES = [b"%%LMQ%%%s%02d" % (b"q" * 40, k) for k in range(60)]
MANY = [b"%%LMQ%%%s%03d" % (b"m" * 30, k) for k in range(400)]  # listed once, in a record of their own
KEYS = [b"T/0", *QUEUES, *MANY[::50]]
PAGE = 4096
_CRC = re.compile(b"__CRC32#\x01")

dispatches = st.one_of(st.sampled_from(["all", "many"]), st.sets(st.integers(0, len(QUEUES) - 1), max_size=5))
sizes = st.one_of(st.integers(0, 200), st.integers(3_500, 9_000), st.just(20_000))
messages = st.tuples(dispatches, sizes)


def names_of(dispatch):
    """Return the light queues that a dispatch of these tests means."""
    return {"all": QUEUES, "many": MANY}[dispatch] if isinstance(dispatch, str) else [QUEUES[k] for k in dispatch]


def append(store, some):
    """Append messages of (dispatch, size) as one batch."""
    first = store.message_count
    routes = [
        (
            store.make_route(b"T", 0, b"LMQ_TOPIC\x01a\x02", names_of(dispatch)),
            b"%d." % (first + i) + b"x" * size,
        )
        for i, (dispatch, size) in enumerate(some)
    ]
    store.append_batch(make_batch(routes), NOW_MS)


def queues_of(store):
    """Return what all queues hold, as (queue offset, body)."""
    return {key: read_queue(store, key) for key in KEYS}


def snapshot(folder):
    """Return the bytes of the files of the log and its indexes, by path below `folder`."""
    return {
        path.relative_to(folder): path.read_bytes()
        for name in ("commitlog", "index")
        for path in sorted((folder / name).iterdir())
    }


def torn(chance, before, after):
    """Return what is on disk of one file that was `before` and was to be `after`."""
    size = max(len(before), len(after))
    found = bytearray(before.ljust(size, b"\0"))
    after = after.ljust(size, b"\0")
    for at in range(0, size, PAGE):
        end = min(at + PAGE, size)
        changed = [i for i in range(at, end) if found[i] != after[i]]
        if changed:
            ends = [match.start() + k for match in _CRC.finditer(after, at, end) for k in range(21)]  # where it matters
            cut = chance.choice(ends if ends and chance.random() < 0.5 else range(changed[0], changed[-1] + 2))
            start, stop = chance.choice([(at, end), (at, end), (at, at), (at, cut), (cut, end)])
            found[start:stop] = after[start:stop]
    return bytes(found)


def crash(chance, folder, before, after):
    """Leave in `folder`, which is as `before`, what the disk has when the machine fails on its way to `after`."""
    made = [path for path in after if path not in before]
    named = made[: chance.randrange(len(made) + 1)]  # file systems keep the order of names
    for path, content in after.items():
        if content != before.get(path, b"") and (path in before or path in named):
            (folder / path).write_bytes(torn(chance, before.get(path, b""), content))


def check(found, confirmed, appended, some):
    """Hold what was found against what was confirmed, and what would be there had nothing failed."""
    for key in KEYS:
        assert found[key][: len(confirmed[key])] == confirmed[key]
        offsets = [offset for offset, _ in found[key]]
        assert offsets == sorted(set(offsets))
        if key not in MANY:  # queues of a shared list are counted, so one that is lost whole takes no offset there
            assert set(found[key]) <= set(appended[key])
        bodies = [body for _, body in appended[key]]
        places = [bodies.index(body) for _, body in found[key]]
        assert places == sorted(set(places))
        if len(some) == 1:
            assert offsets == list(range(len(offsets)))
    bodies = {key: {body for _, body in found[key]} for key in KEYS}
    for (dispatch, _), (_, body) in zip(some, appended[b"T/0"][len(confirmed[b"T/0"]) :], strict=True):
        is_there = body in bodies[b"T/0"]
        seen = {body in bodies[key] for key in names_of(dispatch) if key in KEYS}
        assert len(seen) <= 1
        assert seen <= ({is_there, False} if dispatch == "many" else {is_there})  # the list itself may be what is lost


@pytest.mark.slow
# Each build runs so many, others each time.
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    history=st.lists(st.lists(messages, min_size=1, max_size=4), max_size=6),
    some=st.one_of(st.lists(messages, min_size=1, max_size=1), st.lists(messages, min_size=1, max_size=5)),
    seed=st.integers(0, 1 << 32),
)
@example(history=[[({0}, 20_000)]], some=[("many", 0)], seed=1_362)  # a list that a later copy would bring back
@example(history=[[("all", 20_000)]], some=[("many", 20_000), ("all", 0)], seed=216)  # the same, its message torn too
def test_append_that_a_failing_machine_cuts_short_costs_nothing_that_was_confirmed(history, some, seed):
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        root = Path(name)
        store = open_store(root / "whole", SETTINGS)
        for batch in history:
            append(store, batch)
        store.flush()
        confirmed, before = queues_of(store), snapshot(root / "whole")
        shutil.copytree(root / "whole", root / "torn")
        append(store, some)
        appended, after = queues_of(store), snapshot(root / "whole")
        store.close()

        crash(random.Random(seed), root / "torn", before, after)
        shutil.copytree(root / "torn", root / "bare")
        shutil.rmtree(root / "bare" / "index")
        store = open_store(root / "torn", SETTINGS)
        found = queues_of(store)
        check(found, confirmed, appended, some)
        bare = open_store(root / "bare", SETTINGS)
        assert queues_of(bare) == found
        ends = {key: store.max_offset(store.intern_queue(key)) for key in KEYS}
        assert ends == {key: bare.max_offset(bare.intern_queue(key)) for key in KEYS}
        bare.close()
        append(store, [("all", 10), ("many", 10)])
        for key in KEYS:
            (last,) = read_queue(store, key, ends[key])[-1:]
            assert last[0] == ends[key] + (key == b"T/0")
        found = queues_of(store)
        store.close()
        store = open_store(root / "torn", SETTINGS)
        assert queues_of(store) == found
        store.close()
