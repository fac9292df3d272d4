"""Replies to requests: each is stored on the reply topic, then pushed to the client that asked.

A request is an ordinary message that names its client (`REPLY_TO_CLIENT`) and a number of its own (`CORRELATION_ID`).
Its consumer sends the reply to the topic that `CLUSTER` leads to, and is answered when the client has taken it.

Source: docs/protocols/rocketmq.md, "Requests and replies".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from typing import NamedTuple, Protocol

from gateway.net.protocol import Transport
from gateway.rocketmq.calls import Calls
from gateway.rocketmq.client import Client
from gateway.rocketmq.client_table import ClientTable
from gateway.rocketmq.codec import FIELD_NAMES
from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.commands import Command, answer, decode_header
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode

REPLY_TO = "REPLY_TO_CLIENT"
PUSHED_AT = "PUSH_REPLY_TIME"
LONG_NAMES = {chr(ord("a") + number): name.decode() for name, number in FIELD_NAMES.items()}
PUSHED_FIELDS = (
    "producerGroup",
    "topic",
    "defaultTopic",
    "defaultTopicQueueNums",
    "queueId",
    "sysFlag",
    "bornTimestamp",
    "flag",
    "properties",
    "reconsumeTimes",
    "unitMode",
)


def reply_topic(cluster: bytes) -> bytes:
    """Return the topic that replies to requests of a cluster are sent to."""
    return cluster + b"_REPLY_TOPIC"


class Replier(Protocol):
    """The connection that a reply came in by."""

    transport: Transport

    def answer(self, request: Command, response: Command) -> None:
        """Send the answer to a request."""

    def store_one(self, request: Command, write: Callable[[bytes], None], now_ms: int) -> None:
        """Store one send; `write` gets its answer."""


class Reply(NamedTuple):
    """A reply on its way."""

    request: Command
    peer: Replier
    client_id: str
    fields: dict[str, str]
    now_ms: int


class Replies:
    """Answers SEND_REPLY_MESSAGE in both versions."""

    def __init__(self, clients: ClientTable, calls: Calls) -> None:
        self._clients = clients
        self._calls = calls

    def reply(self, request: Command, peer: Replier, now_ms: int) -> None:
        """Store a reply and push it to the client that it is for.

        Raises:
            CommandRefusedError: It names no client, or one that is not here.
        """
        fields = _long_fields(request)
        client_id = _read_property(fields.get("properties", ""), REPLY_TO)
        if client_id is None:
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"reply message properties[{REPLY_TO}] is null")
        if fields.get("batch", "").lower() == "true":
            raise CommandRefusedError(ResponseCode.MESSAGE_ILLEGAL, "a reply cannot be a batch")
        self._get_client(client_id)
        reply = Reply(request, peer, client_id, fields, now_ms)
        send = Command(
            RequestCode.SEND_MESSAGE_V2,
            request.opaque,
            ext=request.ext,
            body=request.body,
            version=request.version,
            header_type=request.header_type,
        )  # wants an answer, also where the reply does not: it is pushed once it is stored
        peer.store_one(send, partial(self._push, reply), now_ms)

    def _get_client(self, client_id: str) -> Client:
        client = self._clients.find_client(client_id)
        if client is None:
            remark = f"push reply message fail, channel of <{client_id}> not found."
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, remark)
        return client

    def _push(self, reply: Reply, data: bytes) -> None:
        """Push a reply that is stored; answer one that could not be."""
        stored = _decode_answer(data)
        if stored.code != ResponseCode.SUCCESS:
            reply.peer.answer(reply.request, stored)
            return
        try:
            client = self._get_client(reply.client_id)
        except CommandRefusedError as error:
            reply.peer.answer(reply.request, answer(reply.request, error.code, error.remark))
            return
        push = Command(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, ext=_pushed_fields(reply, stored))
        push.body = reply.request.body
        self._calls.call(client, push, partial(self._settle, reply, stored), reply.now_ms)

    def _settle(self, reply: Reply, stored: Command, said: Command | None) -> None:
        response = stored
        if said is None or said.code != ResponseCode.SUCCESS:
            remark = f"push reply message to {reply.client_id}fail."
            response = answer(reply.request, ResponseCode.SYSTEM_ERROR, remark)
        reply.peer.answer(reply.request, response)


def _long_fields(request: Command) -> dict[str, str]:
    """Return the fields of a send by their long names, also where they have letters."""
    if "b" not in request.ext:
        return request.ext
    return {LONG_NAMES[letter]: value for letter, value in request.ext.items() if letter in LONG_NAMES}


def _read_property(properties: str, name: str) -> str | None:
    """Return a property of the encoded ones, the last where it is there again."""
    found = [part for part in properties.split("\x02") if part.startswith(name + "\x01")]
    return found[-1].partition("\x01")[2] if found else None


def _decode_answer(data: bytes) -> Command:
    """Return the one answer that `data` is."""
    frames = Frames(1)
    cut_frames(data, 0, frames, len(data))
    return decode_header(frames.header_type[0], data[frames.header_start[0] : frames.header_end[0]], b"")


def _pushed_fields(reply: Reply, stored: Command) -> dict[str, str]:
    fields = {name: reply.fields[name] for name in PUSHED_FIELDS if name in reply.fields}
    properties = fields.get("properties", "")
    if properties and not properties.endswith("\x02"):
        properties += "\x02"
    fields["properties"] = f"{properties}{PUSHED_AT}\x01{reply.now_ms}\x02"
    fields["queueId"] = stored.ext["queueId"]
    fields["bornHost"] = reply.peer.transport.peer
    fields["storeHost"] = _host_of(stored.ext["msgId"])
    fields["storeTimestamp"] = str(reply.now_ms)
    return fields


def _host_of(message_id: str) -> str:
    """Return the address that a message id begins with."""
    packed = bytes.fromhex(message_id)[:-8]
    return f"{ip_address(packed[:-4])}:{int.from_bytes(packed[-4:], 'big')}"
