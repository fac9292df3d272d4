"""The last retained message of each topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from core.lmq.topic_trie import HASH, PLUS
from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_RETAIN, StoredBatch
from core.parted import PartedMap, mix_number

# A branch of the tree of topics: by level, what is below. None: a topic ends there. Bytes: exactly one topic goes on
# there, with these levels. A branch: several do; its own topic, if there is one, is the entry `_HERE`.
Branch = dict[bytes | None, "Branch | bytes | None"]
_HERE = None
WIDE_MIN = 4_096  # entries of a branch from which on it is kept in parts, so that a walk need not list it in one go
PARTS = 256  # so a branch of a million entries has about WIDE_MIN in a part
LOOKS_MAX = 16  # topics that do not match which a walk looks at before it gives its caller a turn
_MISSING: Branch = {}
_END = b"end"  # told apart by identity


class WideBranch(dict[bytes | None, "Branch | bytes | None"]):
    """A branch of very many entries, in parts; a dict only by its methods."""

    __slots__ = ("_count", "parts")

    def __init__(self, entries: Branch) -> None:
        super().__init__()
        self._count = 0
        self.parts: list[Branch] = [{} for _ in range(PARTS)]
        for name, below in entries.items():
            self[name] = below

    def _part(self, name: object) -> Branch:
        return self.parts[hash(name) % PARTS]

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: object) -> bool:
        return name in self._part(name)

    def __getitem__(self, name: bytes | None) -> Branch | bytes | None:
        return self._part(name)[name]

    def __setitem__(self, name: bytes | None, below: Branch | bytes | None) -> None:
        part = self._part(name)
        self._count += name not in part
        part[name] = below

    def __delitem__(self, name: bytes | None) -> None:
        del self._part(name)[name]
        self._count -= 1

    def find(self, name: bytes | None) -> Branch | bytes | None:
        """Return what is below an entry, `_MISSING` where there is none."""
        return self._part(name).get(name, _MISSING)


class ValueTable(Protocol):
    """A durable map, as the store's tables are."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""

    def delete(self, key: bytes) -> None:
        """Remove `key`."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Give all keys and values."""


class RetainedMessages:
    """Records by topic, as they were stored: segments are retired, so the log cannot be asked for them later.

    Beside the table there is a tree of the topics' levels, so that a filter's match looks at no topic outside its
    literal levels. Topics that share no more levels with others cost one entry of it. And there is a map of the
    records' versions, by which a reader goes through them in the order in which they were stored, and goes on later.

    Args:
        table: Rows of topic and record.
        version_of: Gives the version of a record; those that are set later have higher ones.
    """

    def __init__(self, table: ValueTable, version_of: Callable[[bytes], int]) -> None:
        self._table = table
        self.version_of = version_of
        self._root: Branch = {}
        self._count = 0
        self.changes = 0  # goes up with each message that is set or removed
        self._topics: PartedMap[int, bytes] = PartedMap({}, mix_number)  # by version
        for topic, record in table.items():
            self._plant(topic)
            self._topics[version_of(record)] = topic

    def __len__(self) -> int:
        """Return how many topics have a retained message."""
        return self._count

    def set(self, topic: bytes, record: bytes) -> None:
        """Keep a copy of the record of the newest retained message of `topic`."""
        before = self._table.get(topic)
        if before is not None:
            topic = self._topics.pop(self.version_of(before)) or topic  # the very object that the table has
        self._topics[self.version_of(record)] = topic
        self._table.put(topic, record)
        self._plant(topic)
        self.changes += 1

    def _plant(self, topic: bytes) -> None:
        self._count += _plant(self._root, topic)
        if _is_to_widen(self._root):
            self._root = WideBranch(self._root)

    def remove(self, topic: bytes) -> None:
        """Forget the retained message of `topic`; harmless where there is none."""
        record = self._table.get(topic)
        if record is not None:
            self._topics.pop(self.version_of(record))
            self._table.delete(topic)
            _uproot(self._root, topic)
            self._count -= 1
            self.changes += 1

    def take_in(self, batch: StoredBatch) -> int:
        """Set and remove what the messages of `batch` say, in order; return how many said anything.

        What was taken in before changes nothing, if all that came after it is taken in too.
        """
        flags = batch.flag
        taken = 0
        for i in range(batch.count):
            if flags[i] & FLAG_RETAIN and flags[i] & FLAG_MARK_MASK == FLAG_MARK:
                taken += self._take_in_one(batch, i)
        return taken

    def _take_in_one(self, batch: StoredBatch, i: int) -> bool:
        if batch.topic_start[i] < batch.properties_start[i]:
            return False  # on a RocketMQ topic, and so the producer's own flag
        topic = bytes(batch.buf[batch.topic_start[i] : batch.topic_end[i]])
        if batch.body_start[i] == batch.body_end[i]:
            self.remove(topic)
        else:
            self.set(topic, bytes(batch.buf[batch.record_start[i] : batch.record_end[i]]))
        return True

    def get(self, topic: bytes) -> bytes | None:
        """Return the record of the retained message of `topic`, or None."""
        return self._table.get(topic)

    def find(self, version: int) -> bytes | None:
        """Return the record of a version, where it is the newest of its topic, else None."""
        topic = self._topics.get(version)
        return None if topic is None else self._table.get(topic)

    def walk_versions(self, topic_filter: bytes) -> Iterator[int | None]:
        """Give the version of each retained message that matches, as `walk` does, in no order."""
        for found in self.walk(topic_filter):
            yield None if found is None else self.version_of(found[1])

    def match(self, topic_filter: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Give topic and record of each retained message that matches an MQTT filter; see `walk`."""
        return (found for found in self.walk(topic_filter) if found is not None)

    def walk(self, topic_filter: bytes) -> Iterator[tuple[bytes, bytes] | None]:
        """Give topic and record of each retained message that matches an MQTT filter, None after each few that do not.

        The caller may take its time and change anything meanwhile: it is given what is there when the walk comes by.
        """
        for topic in self._walk_topics(topic_filter.split(b"/")):
            record = None if topic is None else self._table.get(topic)
            if topic is None or record is not None:
                yield None if topic is None or record is None else (topic, record)

    def _walk_topics(self, pattern: list[bytes]) -> Iterator[bytes | None]:
        looks = 0
        waiting: list[tuple[Branch, int, bytes, Iterator[bytes | None]]] = []
        branch, depth, prefix = self._root, 0, b""
        names = _candidates(branch, pattern, depth)
        while True:
            looks += 1
            if looks % LOOKS_MAX == 0:
                yield None
            name = next(names, _END)
            if name is _END:
                if not waiting:
                    return
                branch, depth, prefix, names = waiting.pop()
                continue
            below = _find(branch, name)
            if name is _HERE:
                yield prefix[:-1]
            elif below is None:
                if _tail_matches((), pattern, depth + 1):
                    yield prefix + name
            elif isinstance(below, bytes):
                if _tail_matches(below.split(b"/"), pattern, depth + 1):
                    yield prefix + name + b"/" + below
            elif below is not _MISSING:
                waiting.append((branch, depth, prefix, names))
                branch, depth, prefix = below, depth + 1, prefix + name + b"/"
                names = _candidates(branch, pattern, depth)


def filter_matches(topic_filter: bytes, topic: bytes) -> bool:
    """Return whether an MQTT filter matches a topic."""
    pattern = topic_filter.split(b"/")
    if topic.startswith(b"$") and pattern[0] in {HASH, PLUS}:
        return False
    return _tail_matches(topic.split(b"/"), pattern, 0)


def _candidates(branch: Branch, pattern: list[bytes], depth: int) -> Iterator[bytes | None]:
    """Give the entries of a branch that may match, as they are now."""
    if _is_any(pattern, depth):
        return (name for name in _names(branch) if depth or name is None or not name.startswith(b"$"))
    if depth >= len(pattern):
        return iter((_HERE,) if _HERE in branch else ())
    if pattern[depth] == PLUS:
        return (name for name in _names(branch) if name is not None and (depth or not name.startswith(b"$")))
    return iter((pattern[depth],) if pattern[depth] in branch else ())


def _find(branch: Branch, name: bytes | None) -> Branch | bytes | None:
    return branch.find(name) if isinstance(branch, WideBranch) else branch.get(name, _MISSING)


def _names(branch: Branch) -> Iterator[bytes | None]:
    """Give the entries of a branch, those of each part as they are when the walk comes to it."""
    for part in branch.parts if isinstance(branch, WideBranch) else (branch,):
        yield from list(part)


def _is_to_widen(branch: Branch) -> bool:
    return len(branch) >= WIDE_MIN and not isinstance(branch, WideBranch)


def _is_any(pattern: list[bytes], depth: int) -> bool:
    """Return whether the filter takes whatever comes after `depth` levels."""
    return len(pattern) <= depth + 1 and pattern[len(pattern) - 1] == HASH


def _tail_matches(levels: list[bytes] | tuple[bytes, ...], pattern: list[bytes], depth: int) -> bool:
    """Return whether the levels match the filter from `depth` on."""
    for i, level in enumerate(levels):
        if _is_any(pattern, depth + i):
            return True
        if depth + i >= len(pattern) or pattern[depth + i] not in {PLUS, level}:
            return False
    end = depth + len(levels)
    return end == len(pattern) or _is_any(pattern, end)


def _plant(branch: Branch, topic: bytes) -> bool:
    """Put a topic into the tree; return whether it was not there."""
    name, separator, rest = topic.partition(b"/")
    while True:
        tail = rest if separator else None
        if name not in branch:
            branch[name] = tail
            return True
        below = branch[name]
        if not isinstance(below, dict):
            if below == tail:
                return False
            made: Branch = {}
            _put_tail(made, below)
            branch[name] = below = made
        if tail is None:
            is_new = _HERE not in below
            below[_HERE] = None
            return is_new
        if _is_to_widen(below):
            branch[name] = below = WideBranch(below)
        branch = below
        name, separator, rest = tail.partition(b"/")


def _put_tail(branch: Branch, tail: bytes | None) -> None:
    if tail is None:
        branch[_HERE] = None
    else:
        name, separator, rest = tail.partition(b"/")
        branch[name] = rest if separator else None


def _uproot(branch: Branch, topic: bytes) -> None:
    """Take a topic, which is there, out of the tree."""
    path: list[tuple[Branch, bytes]] = []
    tail: bytes | None = topic
    while tail is not None:
        name, separator, rest = tail.partition(b"/")
        path.append((branch, name))
        below = branch[name]
        if not isinstance(below, dict):
            break
        branch = below
        tail = rest if separator else None
    else:
        del branch[_HERE]
        if branch:
            return
    while path:
        branch, name = path.pop()
        del branch[name]
        if branch:
            return
