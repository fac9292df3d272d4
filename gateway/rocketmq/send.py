"""Sends: each run of them is routed by distinct target, appended as one batch, and answered by one write.

Source: docs/protocols/rocketmq.md, "Sends".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from core.broker import Broker
from core.errors import LmqError, MessageTooLargeError
from core.lmq.expiry import read_ttl
from core.message import FLAG_EXPIRES, FLAG_MARK, Route
from core.metrics import DoorMetrics
from core.room import Room
from gateway.rocketmq.answer_codec import count_stored, encode_send_answers, sum_stored
from gateway.rocketmq.codec import FIELD_NAMES
from gateway.rocketmq.delay import DelayService
from gateway.rocketmq.errors import CommandRefusedError, response_code_of
from gateway.rocketmq.group_table import GroupTable
from gateway.rocketmq.recall_handle import Handles
from gateway.rocketmq.send_answers import SendAnswers
from gateway.rocketmq.send_codec import read_sends
from gateway.rocketmq.send_route import REFUSALS, Decision, GroupLocks, Sender, SendRoutes
from gateway.rocketmq.send_run import (
    REFUSED_TEXT,
    RUN_MAX,
    SendRun,
)
from gateway.rocketmq.timed import TimedMessages
from gateway.rocketmq.topic_table import RETRY_PREFIX, TopicTable
from lmq.remoting.commands import FLAG_RESPONSE, HEADER_BINARY, Command, answer, encode_command
from lmq.remoting.errors import RecordError
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.message_codec import SYS_COMPRESSED, decode_batch, inflate_body
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode

LOW_ROOM = "[REJECTREQUEST]system busy, start flow control for a while: low on "  # as official brokers begin it
BATCH_SENDS_MAX = RUN_MAX
QOS_1 = 1
LETTERS = {name.decode(): chr(ord("a") + number) for name, number in FIELD_NAMES.items()}
TRUE = ("true", "1")  # what a batch says that it is: Java's client, C++'s
ROUTES_A_LOOK = 64  # made between two looks at the share: what is left of a run is parsed again, which is dear too


class Part(NamedTuple):
    """What one ticket of a run stands for: its sends [first, end), and the answers to be given with its outcome."""

    ticket: int
    first: int
    end: int
    answers: bytes  # to stored sends, where their offsets are known already
    failures: bytes = b""  # to the refused sends behind them


class SendService:
    """Stores runs of sends and answers them once they are durable."""

    def __init__(
        self,
        broker: Broker,
        topics: TopicTable,
        groups: GroupTable,
        locks: GroupLocks,
        *,
        delays: DelayService,
        timed: TimedMessages,
        metrics: DoorMetrics,
    ) -> None:
        self._broker = broker
        self._topics = topics
        self._metrics = metrics
        self._routes = SendRoutes(broker, topics, groups, locks, delays)
        self._timed = timed
        self._handles: Handles | None = None  # of the messages that wait, of the run in hand
        self._places_late = broker.engine.places_late
        self.answers = SendAnswers(broker, topics, metrics)

    def store(self, sender: Sender, run: SendRun, now_ms: int) -> None:
        """Store a run; its answers follow when it is durable. While the disk is low on room nothing is stored.

        Where all of it would be too much work, or the connection's share of the turn is over, the run is cut.
        """
        if self._broker.room.is_low:
            self.send_away(sender, run, low_room(self._broker.room), "low_on_disk")
            return
        decisions = self._decide_all(sender, run, now_ms, may_cut=True)
        refusals = self._encode_refusals(run, decisions)
        if refusals:
            self.answers.write_when_safe(sender.write, refusals, 0)
        for part in self._append(sender, run, now_ms):
            if self._places_late:
                encode = partial(self._encode_placed, sender, run, self._handles, part)
                self.answers.write_when_placed(sender.write, run, part.ticket, encode)
            else:
                self.answers.write_when_safe(sender.write, part.answers + part.failures, part.ticket)

    def send_away(self, sender: Sender, run: SendRun, remark: str, reason: str) -> None:
        """Answer that the gateway is busy; to one-way sends none is made, and their messages are dropped.

        Args:
            sender: Where they came from.
            run: The sends.
            remark: What is answered.
            reason: What they are counted by.
        """
        asked = [i for i in range(run.count) if not run.is_one_way[i]]
        if asked:
            self._metrics.refuse(reason, len(asked))
            sender.write(b"".join([_encode_refusal(run, i, ResponseCode.SYSTEM_BUSY, remark) for i in asked]))
        if len(asked) < run.count:
            self._metrics.drop(reason, run.count - len(asked))

    def _decide_all(self, sender: Sender, run: SendRun, now_ms: int, *, may_cut: bool) -> list[Decision]:
        """Fill the batch's routes; return what was decided for each target."""
        batch = run.batch
        routes = self._routes
        self._handles = self._timed.plan(run, now_ms)
        decisions: list[Decision] = []
        made_count = routes.made_count
        for target in run.targets:
            if may_cut and routes.made_count - made_count >= ROUTES_A_LOOK:
                if sender.is_share_over():
                    run.cut(_first_of(run, len(decisions)))
                    break
                made_count = routes.made_count
            decisions.append(routes.decide(sender, target, now_ms))
        batch.topics = [target.space_topic or target.topic for target in run.targets]
        batch.routes = [decision if isinstance(decision, Route) else None for decision in decisions]
        if may_cut:
            run.cut(batch.find_step())
        if any(target.space_topic or target.dispatch for target in run.targets):
            self._prepare_for_other_doors(run, decisions)
            self._count_for_topics(run)
        return decisions

    def _count_for_topics(self, run: SendRun) -> None:
        """Count the messages of a run that are for topics which MQTT and AMQP share, and are not refused."""
        routes, flows = run.batch.routes, self._broker.flows
        kept = [target.space_topic and route is not None for target, route in zip(run.targets, routes, strict=False)]
        counted = [flows.topics if each else None for each in kept]
        flows.add_batch(run.batch, counted + [None] * (len(routes) - len(kept)))

    def _append(self, sender: Sender, run: SendRun, now_ms: int) -> list[Part]:
        """Append the batch; a message that the store refuses is answered and left out, the others are not harmed.

        The run's routes are afterwards what they were before. Answers are encoded where offsets are known at once.
        """
        batch = run.batch
        found: list[Part] = []
        indexes: list[int] = []  # as they were, where some had to be changed
        first = 0
        while first < run.count:
            error: LmqError | None = None
            try:
                self._broker.publish_batch(batch, now_ms)
            except LmqError as caught:
                error = caught
            end = run.count if error is None else min(batch.appended, run.count)
            answers = b"" if self._places_late else self._encode_answers(sender, run, self._handles, first, end)
            if error is None:
                found.append(Part(batch.ticket, first, end, answers))
                break
            last = end + 1 if isinstance(error, MessageTooLargeError) else run.count
            failures = self._encode_failures(run, end, last, error, "send_failed")
            found.append(Part(batch.ticket, first, end, answers, failures))
            indexes = indexes or list(batch.route_index[: run.count])
            batch.routes.append(None)
            for i in range(last):
                batch.route_index[i] = len(batch.routes) - 1
            first = last
        for i, index in enumerate(indexes):
            batch.route_index[i] = index
        return found

    def _encode_placed(
        self, sender: Sender, run: SendRun, handles: Handles | None, part: Part, error: LmqError | None
    ) -> bytes:
        """Return all answers to a part, whose offsets are known unless it is lost."""
        if error is None:
            return self._encode_answers(sender, run, handles, part.first, part.end) + part.failures
        return self._encode_failures(run, part.first, part.end, error, "not_stored") + part.failures

    def _encode_answers(self, sender: Sender, run: SendRun, handles: Handles | None, first: int, end: int) -> bytes:
        """Count stored sends and return their answers; answers to delayed ones carry a recall handle."""
        self._metrics.messages_in += count_stored(run, first, end)
        self._metrics.bytes_in += sum_stored(run, first, end)
        return encode_send_answers(run, sender.host_hex, first, end, handles)

    def recall(
        self,
        request: Command,
        may_publish: Callable[[bytes], bool],
        write: Callable[[bytes], None],
        now_ms: int,
    ) -> None:
        """Take a message back that waits; answered when that is as safe as the settings say."""
        if self._broker.room.is_low:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, low_room(self._broker.room))
        response, ticket = self._timed.recall(request, may_publish, self._broker.store_host, now_ms)
        if not request.is_one_way:
            self.answers.write_when_safe(write, encode_command(response), ticket)

    def _prepare_for_other_doors(self, run: SendRun, decisions: list[Decision]) -> None:
        """Make messages that go beyond their own topic readable there: bodies inflated, our own flag bits."""
        batch = run.batch
        inflated = bytearray()
        base = len(batch.buf)
        for i in range(run.count):
            target = run.targets[batch.route_index[i]]
            if target.space_topic:
                batch.flag[i] = FLAG_MARK | QOS_1
                if read_ttl(run.extra, batch.extra_start[i], batch.extra_end[i]) >= 0:
                    batch.flag[i] |= FLAG_EXPIRES
            if batch.sys_flag[i] & SYS_COMPRESSED and (target.space_topic or target.dispatch):
                body = bytes(batch.buf[batch.body_start[i] : batch.body_end[i]])
                try:
                    plain = inflate_body(body, batch.sys_flag[i], run.body_bytes_max)
                except RecordError as error:
                    batch.route_index[i] = len(decisions)
                    decisions.append(CommandRefusedError(ResponseCode.MESSAGE_ILLEGAL, error.reason))
                    batch.routes.append(None)
                    batch.topics.append(target.topic)
                    continue
                batch.body_start[i] = base + len(inflated)
                inflated += plain
                batch.body_end[i] = base + len(inflated)
                batch.sys_flag[i] = 0
        if inflated:
            batch.buf = bytes(batch.buf) + inflated

    # Answers to what was not stored

    def _encode_refusals(self, run: SendRun, decisions: list[Decision]) -> bytes:
        if all(run.batch.routes):
            return b""
        pieces: list[bytes] = []
        for i in range(run.count):
            decision = decisions[run.batch.route_index[i]]
            if isinstance(decision, CommandRefusedError):
                self._metrics.refuse("send_refused")
                if not run.is_one_way[i]:
                    pieces.append(_encode_refusal(run, i, decision.code, decision.remark))
        return b"".join(pieces)

    def _encode_failures(self, run: SendRun, first: int, end: int, error: LmqError, reason: str) -> bytes:
        code = response_code_of(error)
        wanted = [i for i in range(first, end) if run.batch.routes[run.batch.route_index[i]] is not None]
        self._metrics.refuse(reason, len(wanted))
        return b"".join(_encode_refusal(run, i, code, str(error)) for i in wanted if not run.is_one_way[i])

    # Sends of an unusual shape

    def send_one(self, sender: Sender, run: SendRun, request: Command, now_ms: int) -> None:
        """Store a send, or a batch, whose header the data path did not read.

        Raises:
            CommandRefusedError: A field is missing or wrong.
        """
        fields = _short_fields(request)
        if request.code == RequestCode.SEND_BATCH_MESSAGE or fields.get("m", "").lower() in TRUE:
            self._send_batch(sender, run, request, fields, now_ms)
            return
        self._read_again(run, [(fields | {"m": "false"}, bytes(request.body))], request)
        self.store(sender, run, now_ms)

    def _send_batch(self, sender: Sender, run: SendRun, request: Command, fields: dict[str, str], now_ms: int) -> None:
        """Store all messages of a batch, or none where one finds no room; a crash leaves all of them or none, too.

        Raises:
            CommandRefusedError, LmqError: None is stored.
        """
        try:
            items = list(decode_batch(bytes(request.body)))
        except RecordError as error:
            raise CommandRefusedError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
        if not 0 < len(items) <= BATCH_SENDS_MAX or len(request.body) > run.body_bytes_max:
            raise CommandRefusedError(ResponseCode.MESSAGE_ILLEGAL, "the batch is empty or too large")
        if self._broker.room.is_low:
            if request.is_one_way:
                self._metrics.drop("low_on_disk", len(items))
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, low_room(self._broker.room))
        if fields.get("b", "").encode().startswith(RETRY_PREFIX):
            raise CommandRefusedError(ResponseCode.MESSAGE_ILLEGAL, "a batch cannot go to a group's retry topic")
        common = fields | {"m": "false"}
        sends = [(common | {"h": str(item.flag), "i": _decoded(item.properties)}, item.body) for item in items]
        self._read_again(run, sends, request)
        if any(target.delay_level for target in run.targets):
            raise CommandRefusedError(
                ResponseCode.MESSAGE_ILLEGAL, "messages of a batch cannot be delayed or half ones"
            )
        decisions = self._decide_all(sender, run, now_ms, may_cut=False)
        for decision in decisions:
            if isinstance(decision, CommandRefusedError):
                raise decision
        run.batch.is_whole = True
        self._broker.keep_together(on=True)
        try:
            self._broker.publish_batch(run.batch, now_ms)
        finally:
            self._broker.keep_together(on=False)
        if self._places_late:
            encode = partial(self._encode_batch, sender, run, request)
            self.answers.write_when_placed(sender.write, run, run.batch.ticket, encode)
            return
        self._encode_answers(sender, run, None, 0, run.count)
        if not request.is_one_way:
            self.answers.write_when_safe(sender.write, _batch_answer(sender, run, request), run.batch.ticket)

    def _encode_batch(self, sender: Sender, run: SendRun, request: Command, error: LmqError | None) -> bytes:
        """Return the one answer to a batch, whose offsets are known unless it is lost."""
        if error is None:
            self._encode_answers(sender, run, None, 0, run.count)
            return b"" if request.is_one_way else _batch_answer(sender, run, request)
        self._metrics.refuse("not_stored")
        return b"" if request.is_one_way else _encode_refusal(run, 0, response_code_of(error), str(error))

    def _read_again(self, run: SendRun, sends: list[tuple[dict[str, str], bytes]], request: Command) -> None:
        """Fill the run with sends that are written anew in the shape that the data path reads."""
        data = b"".join(
            encode_command(
                Command(
                    RequestCode.SEND_MESSAGE_V2,
                    request.opaque,
                    request.flag,
                    ext,
                    body=body,
                    header_type=HEADER_BINARY,
                )
            )
            for ext, body in sends
        )
        frames = Frames(len(sends))
        cut_frames(data, 0, frames, len(data))
        run.restart(data)
        if read_sends(frames, 0, run) != len(sends):
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, "a field of the send is missing or no number")
        for i in range(run.count):
            run.header_type[i] = request.header_type


def low_room(room: Room) -> str:
    """Return what a producer is told while there is no room."""
    return LOW_ROOM + ("disk" if room.is_disk_low else "memory")


def _batch_answer(sender: Sender, run: SendRun, request: Command) -> bytes:
    """Return the answer to a batch: all its message ids, and the first one's queue offset."""
    batch = run.batch
    route = batch.routes[batch.route_index[0]]
    assert route is not None
    keys = [bytes(run.extra[run.uniq_start[i] : run.uniq_end[i]]).decode() for i in range(run.count)]
    ids = [f"{sender.host_hex.decode()}{batch.physical_offset[i]:016X}" for i in range(run.count)]
    ext = {
        "msgId": ",".join(ids),
        "queueId": str(route.queue_id),
        "queueOffset": str(batch.queue_offset[0]),
        "transactionId": ",".join(keys),
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
    }
    return encode_command(answer(request, ResponseCode.SUCCESS, ext=ext))


def _encode_refusal(run: SendRun, i: int, code: int, remark: str) -> bytes:
    return encode_command(Command(code, run.batch.tag[i], FLAG_RESPONSE, remark=remark, header_type=run.header_type[i]))


def _first_of(run: SendRun, target_index: int) -> int:
    """Return the first send to a target or to a later one in the list."""
    return next(i for i in range(run.count) if run.batch.route_index[i] >= target_index)


def _short_fields(request: Command) -> dict[str, str]:
    """Return the fields of a send by their letters, also where they have their long names."""
    if "b" in request.ext:
        return request.ext
    return {LETTERS[name]: value for name, value in request.ext.items() if name in LETTERS}


def _decoded(properties: bytes) -> str:
    try:
        return properties.decode()
    except UnicodeDecodeError as error:
        raise CommandRefusedError(ResponseCode.MESSAGE_ILLEGAL, REFUSALS[REFUSED_TEXT]) from error
