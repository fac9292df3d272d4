"""Messages by key: the topic's own queues are looked through, newest first, within the time that the query names.

Where the engine knows which messages may have a key, those alone are read. What is read besides for words of KEYS
leaves filters behind: the next query passes over what cannot have its key.

A unique key has the moment in it at which its message was made, and clients begin their query there: it is read from
that moment on, and mostly found at once.

A query does a step a turn, as a reader among others, and is answered once: when it has as many messages as were asked
for, when it has looked at all, or when it took too long.

Source: docs/protocols/rocketmq.md, "Queries".
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import Protocol

from core.broker import Broker
from core.cache_budget import Cache
from core.lmq.waiters import Reader
from core.message import AWAY, KeySearch, StoredBatch
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import flag_field, integer_field, text_field
from gateway.rocketmq.key_filters import SeenKeys, hash_key, make_filter, may_have, measure
from gateway.rocketmq.picked_records import hash_words, pick_keyed
from gateway.rocketmq.topic_table import TopicTable, queue_key
from lmq.remoting.commands import Command, answer, encode_command
from lmq.remoting.response_codes import ResponseCode

STEP_COUNT = 4_096  # messages looked at in one step: about 1 ms compiled
BATCH_COUNT = 1_024  # read at once; a filter is of so many, from a multiple of it on
PASS_COUNT = 32  # what passing over a batch counts for in a step
QUERIES_MAX = 4  # of one connection at the same time; chosen: a tool asks one thing after the other
ANSWER_COUNT_MAX = 1_024  # chosen: tools ask for 64 unless they are told otherwise
ANSWER_BYTES_MAX = 12 << 20  # of an answer's records; a frame takes 16 MiB
UNIQUE_COUNT_MAX = 32  # as on official brokers, whatever the client says
TIME_MAX_MS = 12_000  # then the query is answered with what it has; clients wait 9 to 18 s
TIME_MS_MAX = 1 << 62  # no bound
REPEATS_MS = 10_000  # so long after a message others of its unique key are looked for: its producer sent it again
NOT_FOUND = "can not find message, maybe time range not correct"
PROPERTY_BY_TYPE = {"K": b"KEYS\x01", "U": b"UNIQ_KEY\x01", "T": b"TAGS\x01"}


class Asker(Protocol):
    """The connection that a query came in by."""

    def write(self, data: bytes) -> None:
        """Send `data`."""

    def may_read(self, queue: bytes) -> bool:
        """Whether this client may read the queue or topic."""


class Stretch:
    """Part of a queue that is to be looked at, from its end to its beginning or the other way round."""

    def __init__(self, queue_ref: int) -> None:
        self.queue_ref = queue_ref
        self.first = -1
        self.end = -1
        self.newest_ms = TIME_MS_MAX  # none of it was stored later
        self.oldest_ms = -1  # none of it was stored earlier


class MessageQuery(Reader):
    """One query."""

    def __init__(self, service: MessageQueries, asker: Asker, conn_id: int, request: Command, until_ms: int) -> None:
        self.service = service
        self.asker = asker
        self.conn_id = conn_id
        self.request = request
        self.until_ms = until_ms
        self.name = b""  # of the property that is compared
        self.key = b""
        self.hash = 0  # of the key, for filters
        self.is_list = False
        self.is_told = False  # engines may know which messages have such a key
        self.goes_on = False  # from the oldest messages on
        self.count_max = 0
        self.stretches: list[Stretch] = []
        self.ends_awaited = 0  # of the stretches: nothing is looked at before they are known
        self.is_whole = True
        self.found: list[tuple[int, int, bytes]] = []  # physical offset, store time, record
        self.found_bytes = 0
        self.looked_at = 0

    def on_ready(self, now_ms: int) -> bool:
        """Do a step."""
        self.service.step(self, now_ms)
        return False


class MessageQueries:
    """Answers QUERY_MESSAGE."""

    def __init__(self, broker: Broker, topics: TopicTable) -> None:
        self._broker = broker
        self._topics = topics
        self._batch = StoredBatch(BATCH_COUNT)
        self._picked = array("i", bytes(4 * BATCH_COUNT))
        self._search = KeySearch()
        self._hashes: list[int] = []  # of the words of KEYS that were read
        self._seen = Cache(broker.caches, "rocketmq_keys", measure)
        self._open: dict[int, list[MessageQuery]] = {}  # by connection

    def query(self, asker: Asker, conn_id: int, request: Command, now_ms: int) -> None:
        """Begin a query.

        Raises:
            CommandRefusedError: It asks for what there is not, or the connection has too many under way.
        """
        topic = text_field(request, "topic").encode()
        query = MessageQuery(self, asker, conn_id, request, now_ms + TIME_MAX_MS)
        self._read_request(query)
        if not asker.may_read(topic):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to read {topic.decode()}")
        if len(self._open.get(conn_id, ())) >= QUERIES_MAX:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, f"{QUERIES_MAX} queries are under way already")
        begin_ms = integer_field(request, "beginTimestamp")
        end_ms = min(integer_field(request, "endTimestamp"), TIME_MS_MAX)
        found = self._topics.get(topic)
        count = max(found.read_queues, found.write_queues) if begin_ms <= end_ms else 0
        refs = [self._broker.find_queue(queue_key(topic, k)) for k in range(count)]
        query.stretches = [Stretch(ref) for ref in refs if ref >= 0]
        self._open.setdefault(conn_id, []).append(query)  # nothing is refused from here on
        self._find_stretches(query, begin_ms, end_ms)

    def _read_request(self, query: MessageQuery) -> None:
        request = query.request
        kind = request.ext.get("indexType") or "K"
        if flag_field(request, "_UNIQUE_KEY_QUERY", otherwise=False):
            kind = "U"
        name = PROPERTY_BY_TYPE.get(kind)
        if name is None:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, f"messages cannot be looked up by {kind!r}")
        query.name, query.is_list = name, kind == "K"
        query.key = text_field(request, "key").encode()
        query.hash = hash_key(query.key)
        query.is_told = kind != "T" and len(query.key) > 0
        count_max = UNIQUE_COUNT_MAX if kind == "U" else integer_field(request, "maxNum")
        query.count_max = max(1, min(count_max, ANSWER_COUNT_MAX))
        query.goes_on = kind == "U" and integer_field(request, "beginTimestamp") > 0

    def _find_stretches(self, query: MessageQuery, begin_ms: int, end_ms: int) -> None:
        """Find what each queue of the topic has of this time; the query begins when all of it is known."""
        stretches = query.stretches.copy()
        query.ends_awaited = 2 * len(stretches) + 1
        for stretch in stretches:
            self._broker.find_offset(stretch.queue_ref, begin_ms, partial(self._note_first, query, stretch))
            self._broker.find_offset(stretch.queue_ref, end_ms + 1, partial(self._note_end, query, stretch))
        self._note_found(query)

    def _note_first(self, query: MessageQuery, stretch: Stretch, offset: int) -> None:
        stretch.first = offset
        self._note_found(query)

    def _note_end(self, query: MessageQuery, stretch: Stretch, offset: int) -> None:
        stretch.end = offset
        self._note_found(query)

    def _note_found(self, query: MessageQuery) -> None:
        query.ends_awaited -= 1
        if not query.ends_awaited and query in self._open.get(query.conn_id, ()):
            query.is_whole = all(stretch.first >= 0 and stretch.end >= 0 for stretch in query.stretches)
            query.stretches = [stretch for stretch in query.stretches if 0 <= stretch.first < stretch.end]
            self._broker.request_run(query)

    def forget(self, conn_id: int) -> None:
        """End the queries of a connection that is gone."""
        for query in self._open.pop(conn_id, ()):
            self._broker.cancel_run(query)

    def step(self, query: MessageQuery, now_ms: int) -> None:
        """Look at some more messages; answer where that was the last."""
        left = STEP_COUNT
        while left > 0 and query.stretches:
            left -= self._look_on(query) if query.goes_on else self._look_back(query)
            if _has_enough(query):
                query.stretches = []
        if not query.stretches:
            self._answer(query, is_whole=query.is_whole)
        elif query.until_ms <= now_ms:
            self._answer(query, is_whole=False)
        else:
            self._broker.request_run(query)

    def _look_back(self, query: MessageQuery) -> int:
        """Look at the newest messages of the stretch that may have the newest; return how many."""
        stretch = max(query.stretches, key=lambda stretch: stretch.newest_ms)
        cost = self._look_at_told(query, stretch, is_back=True)
        if cost:
            return cost
        end = stretch.end
        base = (end - 1) // BATCH_COUNT * BATCH_COUNT
        start, cost = max(stretch.first, base), PASS_COUNT
        if not self._pass_over(query, stretch, base):
            if not self._look_at(query, stretch, start, end):
                return STEP_COUNT
            cost = end - start
        query.looked_at += end - start
        stretch.end = start
        if stretch.first == start:
            query.stretches.remove(stretch)
        return cost

    def _pass_over(self, query: MessageQuery, stretch: Stretch, base: int) -> bool:
        """Return whether the messages from `base` on, as many as a filter has, are known not to have the key."""
        if not query.is_list:
            return False
        seen = self._seen.get((stretch.queue_ref, base))
        if not isinstance(seen, SeenKeys) or may_have(seen.bits, query.hash):
            return False
        stretch.newest_ms = seen.newest_ms
        return True

    def _look_on(self, query: MessageQuery) -> int:
        """Look at the oldest messages of the stretch that may have the oldest; return how many."""
        stretch = min(query.stretches, key=lambda stretch: stretch.oldest_ms)
        cost = self._look_at_told(query, stretch, is_back=False)
        if cost:
            return cost
        start, end = stretch.first, min(stretch.end, stretch.first + BATCH_COUNT)
        if not self._look_at(query, stretch, start, end):
            return STEP_COUNT
        query.looked_at += end - start
        stretch.first = end
        if stretch.end == end:
            query.stretches.remove(stretch)
        return end - start

    def _look_at_told(self, query: MessageQuery, stretch: Stretch, *, is_back: bool) -> int:
        """Look at what the engine knows of that side of a stretch; return the cost of that, 0 where it knows nothing.

        The moments that the stretch is known by stay within those of its messages.
        """
        if not query.is_told:
            return 0
        search = self._search
        search.ask(stretch.queue_ref, stretch.first, stretch.end, query.key, is_back=is_back)
        if not self._broker.find_keyed(search):
            return 0
        if not self._read_told(query, stretch, search):
            return STEP_COUNT
        if is_back:
            query.looked_at += stretch.end - search.bound
            stretch.end = search.bound
        else:
            query.looked_at += search.bound - stretch.first
            stretch.first = search.bound
        if stretch.first >= stretch.end:
            query.stretches.remove(stretch)
        return PASS_COUNT + search.count

    def _read_told(self, query: MessageQuery, stretch: Stretch, search: KeySearch) -> bool:
        """Read what was found; False where some are on their way."""
        batch, done, count = self._batch, 0, search.count
        found_before = len(query.found), query.found_bytes
        while done < count:
            dealt = self._broker.read_offsets(stretch.queue_ref, search.offsets[done:count], count - done, batch)
            if dealt == AWAY:
                del query.found[found_before[0] :]
                query.found_bytes = found_before[1]
                return False
            if batch.count:
                if done == 0:
                    stretch.newest_ms = batch.store_ms[0]
                stretch.oldest_ms = batch.store_ms[batch.count - 1]
                self._pick(query)
            done += dealt
        batch.clear()
        return True

    def _look_at(self, query: MessageQuery, stretch: Stretch, start: int, end: int) -> bool:
        """Look at the messages [start, end) of a stretch; False where some are on their way: again in the next turn."""
        offset = start
        self._hashes.clear()
        found_before = len(query.found), query.found_bytes
        while offset < end:
            count = self._broker.read(stretch.queue_ref, offset, self._batch, end - offset, TIME_MS_MAX)
            if count == AWAY:
                del query.found[found_before[0] :]
                query.found_bytes = found_before[1]
                return False
            if not count:
                break
            if offset == start:
                stretch.newest_ms = self._batch.store_ms[0]
            stretch.oldest_ms = self._batch.store_ms[count - 1]
            self._pick(query)
            if query.is_list:
                hash_words(self._batch, query.name, self._hashes)
            offset = self._batch.next_offset
        self._batch.clear()
        if query.is_list and offset >= end and not start % BATCH_COUNT and end - start == BATCH_COUNT:
            self._seen.put((stretch.queue_ref, start), SeenKeys(stretch.newest_ms, make_filter(self._hashes)))
        return True

    def _pick(self, query: MessageQuery) -> None:
        batch, picked = self._batch, self._picked
        for k in range(pick_keyed(batch, query.name, query.key, query.is_list, picked)):
            i = picked[k]
            record = bytes(batch.buf[batch.record_start[i] : batch.record_end[i]])
            query.found.append((batch.physical_offset[i], batch.store_ms[i], record))
            query.found_bytes += len(record)

    def _answer(self, query: MessageQuery, *, is_whole: bool) -> None:
        self._end(query)
        found = sorted(query.found, reverse=True)[: query.count_max]
        size = 0
        records: list[bytes] = []
        for _, _, record in found:
            size += len(record)
            if records and size > ANSWER_BYTES_MAX:
                break
            records.append(record)
        offset, store_ms = (found[0][0], found[0][1]) if found else (0, 0)
        ext = {"indexLastUpdateTimestamp": str(store_ms), "indexLastUpdatePhyoffset": str(offset)}
        code, remark = ResponseCode.SUCCESS, None
        if not records and is_whole:
            code, remark = ResponseCode.QUERY_NOT_FOUND, NOT_FOUND
        elif not records:
            code = ResponseCode.SYSTEM_BUSY
            which = "oldest" if query.goes_on else "newest"
            remark = f"not found among the {which} {query.looked_at} messages in time: name a narrower range of time"
        query.asker.write(encode_command(answer(query.request, code, remark, ext=ext, body=b"".join(records))))

    def _end(self, query: MessageQuery) -> None:
        queries = self._open[query.conn_id]
        queries.remove(query)
        if not queries:
            del self._open[query.conn_id]


def _has_enough(query: MessageQuery) -> bool:
    """Return whether nothing that was not looked at can be among the newest that were asked for."""
    if query.found_bytes >= ANSWER_BYTES_MAX:
        return True
    if query.goes_on and query.found and query.stretches:
        return min(stretch.oldest_ms for stretch in query.stretches) > query.found[0][1] + REPEATS_MS
    if len(query.found) < query.count_max:
        return False
    newest_ms = max((stretch.newest_ms for stretch in query.stretches), default=0)
    return sum(store_ms >= newest_ms for _, store_ms, _ in query.found) >= query.count_max
