"""Answers POP_MESSAGE, NOTIFICATION and POLLING_INFO, at once or when there is something.

Source: docs/protocols/rocketmq.md, "POP".
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from core.broker import Broker
from gateway.rocketmq.client import Client
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import check_group, flag_field, integer_field, text_field
from gateway.rocketmq.filters.matching import parse_filter
from gateway.rocketmq.group_table import GroupTable
from gateway.rocketmq.held import HELD_MAX
from gateway.rocketmq.pop.room import ALL_QUEUES, WAITING_MAX, Peer, Room, Waiting
from gateway.rocketmq.pop.taking import COUNT_MAX, Taker, Wish, encode_answer
from gateway.rocketmq.tag_filter import ALL
from gateway.rocketmq.topic_table import PERM_READ, TopicTable, queue_key
from lmq.remoting.commands import Command, answer, encode_command
from lmq.remoting.response_codes import ResponseCode

WAITING_ALL_MAX = 100_000  # in all rooms, as with an official broker
POLL_MS_MAX = 600_000  # longer than any client waits for an answer
INVISIBLE_MS_MAX = 30 * 86_400_000  # chosen: 30 days; the longest that clients of version 5 ask for is 12 hours
LATE_MS_MAX = 500  # a request that is so much over its time is given up by its client
CLOCK_SET_MS = 1_000  # all requests of a client look late for so long: it is not they that are
TOO_LATE = "pop message is timeout too much"
QUEUES_ASKED_MAX = 64  # of which it is asked whether a client may read them: a right is a whole topic's, mostly
INIT_MAX = 1  # a new group begins at the end


class Popper(Peer, Protocol):
    """The connection that a request came in by."""

    client: Client

    def write(self, data: bytes) -> None:
        """Send `data`."""

    def may_read(self, queue: bytes) -> bool:
        """Whether this client may read the queue or topic."""

    def may_consume(self, group: bytes) -> bool:
        """Whether this client may consume as the group."""


class Place(NamedTuple):
    """Which queues of which group a request is about."""

    group: bytes
    topic: bytes
    queue_id: int  # or ALL_QUEUES
    queue_count: int


class HeldPop(Waiting):
    """A request for messages."""

    __slots__ = ("popper", "request", "taker", "wish")

    def __init__(
        self, popper: Popper, room: Room, queue_id: int, request: Command, *, taker: Taker, wish: Wish
    ) -> None:
        super().__init__(popper, room, queue_id)
        self.popper = popper
        self.request = request
        self.taker = taker
        self.wish = wish

    def try_serve(self, now_ms: int) -> bool:
        """Answer with messages, where there are some."""
        pace, wish = self.popper.held, self.wish
        if pace.pacing is not None:
            wish = wish._replace(count_max=min(wish.count_max, pace.room(now_ms)))
            if wish.wanted is None:  # of what a filter picks from, much may be left out: small reads would be many
                wish = wish._replace(bytes_max=min(wish.bytes_max, pace.room_bytes(now_ms)))
        found = self.taker.take(self.room, self.queue_id, wish, now_ms)
        pace.note(found.count, found.body_bytes, now_ms)
        if found.count:
            self.popper.write(encode_answer(found, self.request, ResponseCode.POLLING_TIMEOUT))
        return found.count > 0

    def answer_empty(self, now_ms: int, code: ResponseCode = ResponseCode.POLLING_TIMEOUT) -> None:
        """Answer that there are none."""
        self.popper.write(encode_answer(self.taker.begin(self.wish, now_ms), self.request, code))


class HeldNotice(Waiting):
    """A request to be told when there are messages."""

    __slots__ = ("group", "is_ordered", "popper", "request", "taker")

    def __init__(self, popper: Popper, room: Room, queue_id: int, request: Command, *, taker: Taker) -> None:
        super().__init__(popper, room, queue_id)
        self.popper = popper
        self.request = request
        self.taker = taker
        self.group = room.group
        self.is_ordered = flag_field(request, "order", otherwise=False)

    def try_serve(self, now_ms: int) -> bool:  # noqa: ARG002 - the interface says so
        """Answer that there are messages, where there are."""
        found = self.taker.has_messages(self.room, self.queue_id, self.group, is_ordered=self.is_ordered)
        if found:
            self._tell({"hasMsg": "true", "pollingFull": "false"})
        return found

    def answer_empty(self, now_ms: int, code: ResponseCode = ResponseCode.POLLING_TIMEOUT) -> None:  # noqa: ARG002
        """Answer that there are none."""
        is_full = code == ResponseCode.POLLING_FULL
        self._tell({"hasMsg": "false", "pollingFull": "true" if is_full else "false"})

    def _tell(self, ext: dict[str, str]) -> None:
        self.popper.write(encode_command(answer(self.request, ResponseCode.SUCCESS, ext=ext)))


class PopService:
    """All rooms, and what is asked of them.

    Args:
        broker: Where the queues are.
        topics: The topics.
        groups: Whether they may consume.
        taker: Takes messages.
    """

    def __init__(self, broker: Broker, topics: TopicTable, groups: GroupTable, taker: Taker) -> None:
        self.broker = broker
        self.waiting_count = 0
        self._topics = topics
        self._groups = groups
        self._taker = taker
        self._rooms: dict[tuple[bytes, bytes, bool], Room] = {}  # by group, topic, and whether they want an order

    def pop(self, popper: Popper, request: Command, now_ms: int) -> None:
        """Answer with messages, which are the consumer's for a time, or hold the request.

        Raises:
            CommandRefusedError: It asks for what there is not.
        """
        left_ms = _time_left(popper.client, request, now_ms)
        wish = _read_wish(request)
        if left_ms < -LATE_MS_MAX:  # with its fields, as a client reads this code
            nothing = self._taker.begin(wish, now_ms)
            if not request.is_one_way:
                popper.write(encode_answer(nothing, request, ResponseCode.POLLING_TIMEOUT, TOO_LATE))
            return
        place = self.find_place(popper, request)
        room = self._open_room(place, is_ordered=wish.is_ordered)
        held = HeldPop(popper, room, place.queue_id, request, taker=self._taker, wish=wish)
        self._serve(held, left_ms, now_ms, is_one_way=request.is_one_way)

    def notify(self, popper: Popper, request: Command, now_ms: int) -> None:
        """Answer whether there are messages for a group; where there are none, when some came or the time is over.

        Raises:
            CommandRefusedError: It asks for what there is not.
        """
        left_ms = _time_left(popper.client, request, now_ms)
        place = self.find_place(popper, request)
        room = self._open_room(place, is_ordered=flag_field(request, "order", otherwise=False))
        held = HeldNotice(popper, room, place.queue_id, request, taker=self._taker)
        self._serve(held, left_ms, now_ms, is_one_way=request.is_one_way)

    def count_polls(self, popper: Popper, request: Command) -> Command:
        """Answer with how many requests of a group wait for a queue, or for all."""
        place = self.find_place(popper, request)
        count = sum(room.count_waiting(place.queue_id) for room in self._rooms_of(place.group, place.topic))
        return answer(request, ResponseCode.SUCCESS, ext={"pollingNum": str(count)})

    def note_settled(self, group: bytes, topic: bytes, queue_id: int) -> None:
        """A message that was taken is done, or shown otherwise: consumers that wait may have the next."""
        for room in self._rooms_of(group, topic):
            room.note_settled(queue_id)

    def _rooms_of(self, group: bytes, topic: bytes) -> list[Room]:
        found = (self._rooms.get((group, topic, is_ordered)) for is_ordered in (False, True))
        return [room for room in found if room is not None]

    def note_room(self) -> None:
        """Serve those again that had nothing because too much was in flight of all groups."""
        for room in self._rooms.values():
            if room.waiting:
                room.note_room()

    def look_again(self, group: bytes) -> None:
        """Serve a group from where it is now."""
        for room in self._rooms.values():
            if room.group == group:
                room.look_again()

    def tend(self) -> None:
        """Forget rooms that nobody used since the last call."""
        for key, room in list(self._rooms.items()):
            if room.waiting or room.is_used:
                room.is_used = False
            else:
                room.close()
                del self._rooms[key]

    def _serve(self, held: HeldPop | HeldNotice, poll_ms: int, now_ms: int, *, is_one_way: bool) -> None:
        """Answer a request at once, or hold it for so long; requests that wait already have their turn first."""
        if is_one_way:  # messages that are taken for nobody would be hidden for nothing
            return
        room, peer = held.room, held.peer
        poll_ms = max(poll_ms, peer.held.pause_ms(now_ms))
        is_first = not room.waiting
        if is_first and peer.is_writable and held.try_serve(now_ms):
            return
        if poll_ms <= 0:
            if is_first or not held.try_serve(now_ms):
                held.answer_empty(now_ms)
        elif self._is_full(held):
            held.answer_empty(now_ms, ResponseCode.POLLING_FULL)
        else:
            held.deadline_ms = now_ms + min(poll_ms, POLL_MS_MAX)
            peer.hold(held)
            room.enter(held)

    def _is_full(self, held: Waiting) -> bool:
        return (
            self.waiting_count >= WAITING_ALL_MAX
            or held.room.count_waiting(held.queue_id) >= WAITING_MAX
            or len(held.peer.held) >= HELD_MAX
        )

    def _open_room(self, place: Place, *, is_ordered: bool) -> Room:
        key = (place.group, place.topic, is_ordered)
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = Room(self, place.group, place.topic)
        room.open_queues(place.queue_id, place.queue_count)
        return room

    def find_place(self, popper: Popper, request: Command) -> Place:
        """Return which queues a request is about.

        Raises:
            CommandRefusedError: There are no such ones, or the group or the client may not consume them.
        """
        group = text_field(request, "consumerGroup")
        name = text_field(request, "topic")
        topic = self._topics.get(name.encode())
        if not topic.perm & PERM_READ:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"the topic[{name}] peeking message is forbidden")
        queue_id = max(integer_field(request, "queueId"), ALL_QUEUES)
        if queue_id >= topic.read_queues:
            remark = f"queueId[{queue_id}] is illegal, topic:[{name}] topicConfig.readQueueNums:[{topic.read_queues}]"
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, remark)
        check_group(group)
        if not self._groups.get(group.encode()).consumeEnable:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"subscription group no permission, {group}")
        asked = range(min(topic.read_queues, QUEUES_ASKED_MAX)) if queue_id == ALL_QUEUES else (queue_id,)
        if not all(popper.may_read(queue_key(name.encode(), number)) for number in asked):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to read {name}")
        if not popper.may_consume(group.encode()):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to consume as {group}")
        return Place(group.encode(), name.encode(), queue_id, topic.read_queues)


def _read_wish(request: Command) -> Wish:
    count_max = integer_field(request, "maxMsgNums")
    if count_max > COUNT_MAX:
        raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, f"pop message's num is greater than {COUNT_MAX}")
    invisible_ms = integer_field(request, "invisibleTime")
    if not 0 < invisible_ms <= INVISIBLE_MS_MAX:
        remark = f"invisibleTime[{invisible_ms}] is illegal, it is 1 to {INVISIBLE_MS_MAX} ms"
        raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, remark)
    return Wish(
        text_field(request, "consumerGroup").encode(),
        max(count_max, 1),
        invisible_ms,
        parse_filter(request.ext.get("expType", ""), request.ext.get("exp") or ALL),
        at_end=integer_field(request, "initMode") == INIT_MAX,
        is_ordered=flag_field(request, "order", otherwise=False),
        attempt_id=request.ext.get("attemptId", ""),
    )


def _time_left(client: Client, request: Command, now_ms: int) -> int:
    """Return for how long a request may wait still: its time without that for which it was under way.

    Which is measured by the least that this client's requests took, so a clock that is wrong on either side says
    nothing. One that is set while the client is connected makes all that follows look late: after a second of that the
    least is another.
    """
    poll_ms = integer_field(request, "pollTime")
    born_ms = integer_field(request, "bornTime", 0)
    if born_ms <= 0:
        return poll_ms
    lag_ms = now_ms - born_ms
    if client.lag_ms is None or lag_ms < client.lag_ms:
        client.lag_ms = lag_ms
    left_ms = poll_ms - (lag_ms - client.lag_ms)
    if left_ms > 0 or lag_ms == client.lag_ms:
        client.late_since_ms = None
    elif client.late_since_ms is None:
        client.late_since_ms = now_ms
    elif abs(now_ms - client.late_since_ms) >= CLOCK_SET_MS:
        client.lag_ms, client.late_since_ms = lag_ms, None
        return poll_ms
    return left_ms
