"""A consumer by POP: it makes its receipts as Apache RocketMQ's Java client does, from the answer and the records."""

from __future__ import annotations

from dataclasses import dataclass

from lmq.remoting.commands import Command
from lmq.remoting.message_codec import Record
from lmq.remoting.response_codes import ResponseCode
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_door import Peer, records_of


@dataclass
class Popped:
    """A message as the client shows it to its user."""

    body: bytes
    receipt: str
    attempts: int  # before this one
    queue_id: int
    offset: int


def pop_fields(topic: str = "T", **changes: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "consumerGroup": "g", "topic": topic, "queueId": -1, "maxMsgNums": 32, "invisibleTime": 60_000, "pollTime": 0,
        "bornTime": 0, "initMode": 0, "expType": "TAG", "exp": "*", "order": "false",
    }  # fmt: skip
    return fields | changes


def read_popped(answer: Command, topic: str = "T") -> list[Popped]:
    """Return the messages of an answer, as the Java client's `processPopResponse` does."""
    ext = answer.ext
    for name in ("popTime", "invisibleTime", "reviveQid", "restNum"):
        int(ext[name])
    records = records_of(answer)
    if not records:
        return []
    starts = _parse(ext["startOffsetInfo"])
    offsets = {key: [int(text) for text in value.split(",")] for key, value in _parse(ext["msgOffsetInfo"]).items()}
    counts = _parse(ext.get("orderCountInfo", ""))
    in_order: dict[str, list[int]] = {}
    for record in records:
        key, offset = _place(record, topic)
        in_order.setdefault(key, []).append(offset)
    return [_show(record, topic, ext, starts, offsets, counts, in_order) for record in records]


def _show(record, topic, ext, starts, offsets, counts, in_order) -> Popped:
    receipt = record.properties.get(b"POP_CK", b"").decode()
    attempts = record.reconsume_times
    if not receipt:
        key, offset = _place(record, topic)
        offset = offsets[key][in_order[key].index(offset)]
        flag, queue_id = key.split("@")
        receipt = " ".join(
            (starts[key], ext["popTime"], ext["invisibleTime"], ext["reviveQid"], flag, "lmq", queue_id, str(offset))
        )
        attempts = int(counts.get(f"{flag}@qo{queue_id}%{offset}", attempts))
    parts = receipt.split(" ")
    return Popped(record.body, receipt, attempts, int(parts[6]), int(parts[7]))


def _place(record: Record, topic: str) -> tuple[str, int]:
    if topic.startswith("%LMQ%") and not record.reconsume_times and record.properties.get(b"INNER_MULTI_DISPATCH"):
        offset = record.light_offset(topic.encode())
        assert offset is not None
        return "0@0", offset
    retry = record.topic.startswith(b"%RETRY%") and not record.properties.get(b"POP_CK")
    return f"{int(retry)}@{record.queue_id}", record.queue_offset


def _parse(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in text.split(";") if text else []:
        flag, queue_id, value = one.split(" ")
        assert f"{flag}@{queue_id}" not in found, "the client fails on a queue that is there twice"
        found[f"{flag}@{queue_id}"] = value
    return found


def start_pop(peer: Peer, topic: str = "T", **changes: object) -> None:
    """Send a request for messages without looking for its answer."""
    peer.give(request_frame(200_050, opaque=77, **pop_fields(topic, **changes)))


def ask_pop(peer: Peer, topic: str = "T", **changes: object) -> Command:
    """Ask for messages and return the answer that came at once; again where messages are on their way."""
    for _ in range(8):
        peer.site.turn()
        peer.site.open_queues()
        start_pop(peer, topic, **changes)
        (answer,) = [command for command in peer.take() if command.is_response]
        if answer.code != ResponseCode.POLLING_TIMEOUT or not getattr(peer.site.engine, "away", 0):
            break
    return answer


def pop(peer: Peer, topic: str = "T", **changes: object) -> list[Popped]:
    """Return the messages that are given at once."""
    answer = ask_pop(peer, topic, **changes)
    assert answer.code in {0, 210}, answer.remark
    return read_popped(answer, topic)


def ack(peer: Peer, message: Popped, topic: str = "T", **changes: object) -> Command:
    fields: dict[str, object] = {
        "consumerGroup": "g", "topic": topic, "queueId": message.queue_id, "offset": message.offset,
        "extraInfo": message.receipt,
    }  # fmt: skip
    return peer.ask(200_051, **(fields | changes))


def change_invisible(peer: Peer, message: Popped, invisible_ms: int, topic: str = "T", **changes: object) -> Popped:
    """Return the message with its new receipt, which the client makes of the answer."""
    answer = ask_change(peer, message, invisible_ms, topic, **changes)
    assert answer.code == 0, answer.remark
    ext = answer.ext
    parts = message.receipt.split(" ")
    receipt = " ".join(
        (str(message.offset), ext["popTime"], ext["invisibleTime"], ext["reviveQid"], *parts[4:7], str(message.offset))
    )
    return Popped(message.body, receipt, message.attempts, message.queue_id, message.offset)


def ask_change(peer: Peer, message: Popped, invisible_ms: int, topic: str = "T", **changes: object) -> Command:
    fields: dict[str, object] = {
        "consumerGroup": "g", "topic": topic, "queueId": message.queue_id, "offset": message.offset,
        "extraInfo": message.receipt, "invisibleTime": invisible_ms,
    }  # fmt: skip
    return peer.ask(200_053, **(fields | changes))


def fill(peer, count: int, **changes: object) -> None:
    for i in range(count):
        assert peer.send(b"m%d" % i, **changes).code == 0


def bodies(messages) -> list[bytes]:
    return [message.body for message in messages]


def waiting_pop(peer, topic: str = "T", **changes: object) -> None:
    """Have a request wait: it was not answered."""
    start_pop(peer, topic, **({"pollTime": 10_000} | changes))
    assert peer.take() == []
