"""Requests, which are messages that name the client that waits for their reply, and the replies that brokers push."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping

from lmq.message import Message
from lmq.remoting.commands import Command, answer
from lmq.remoting.errors import RecordError
from lmq.remoting.message_codec import BODY_BYTES_MAX, SYS_COMPRESSED, decode_properties, inflate_body
from lmq.remoting.response_codes import ResponseCode

CORRELATION_ID = "CORRELATION_ID"
REPLY_TO = "REPLY_TO_CLIENT"
TTL = "TTL"
CLUSTER = "CLUSTER"
REPLY_TOPIC = "_REPLY_TOPIC"  # after the cluster's name


class Replies:
    """Replies that are waited for.

    Args:
        client_id: What requests name.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._waiting: dict[str, asyncio.Future[Message]] = {}

    def expect(self, timeout_s: float) -> tuple[dict[str, str], asyncio.Future[Message]]:
        """Return the properties that make a message a request, and what its reply will be; `forget` it at last."""
        number = secrets.token_hex(16)
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        return {CORRELATION_ID: number, REPLY_TO: self._client_id, TTL: str(round(timeout_s * 1000))}, reply

    def forget(self, properties: Mapping[str, str]) -> None:
        """Wait for this reply no more."""
        self._waiting.pop(properties[CORRELATION_ID], None)

    def take(self, _server: str, pushed: Command) -> Command:
        """Take a reply that a broker pushed; one that nobody waits for any more is taken too."""
        encoded = decode_properties(pushed.ext.get("properties", "").encode())
        properties = {name.decode(): value.decode() for name, value in encoded.items()}
        body, sys_flag = bytes(pushed.body), _number(pushed, "sysFlag")
        if sys_flag & SYS_COMPRESSED:
            try:
                body = inflate_body(body, sys_flag, BODY_BYTES_MAX)
            except RecordError as error:
                return answer(pushed, ResponseCode.SYSTEM_ERROR, error.reason)
        waiting = self._waiting.get(properties.get(CORRELATION_ID, ""))
        if waiting is not None and not waiting.done():
            topic = pushed.ext.get("topic", "")
            waiting.set_result(
                Message(
                    topic=topic,
                    body=body,
                    properties=properties,
                    queue=topic,
                    queue_id=_number(pushed, "queueId"),
                    queue_offset=0,
                    physical_offset=0,
                    born_ms=_number(pushed, "bornTimestamp"),
                    store_ms=_number(pushed, "storeTimestamp"),
                    born_host=b"",
                    flag=_number(pushed, "flag"),
                )
            )
        return answer(pushed, ResponseCode.SUCCESS)


def properties_of_reply(request: Message) -> dict[str, str]:
    """Return the properties of a reply to a request.

    Raises:
        ValueError: The message is no request.
    """
    properties = {name: request.properties.get(name, "") for name in (CORRELATION_ID, REPLY_TO, TTL)}
    if not properties[CORRELATION_ID] or not properties[REPLY_TO] or CLUSTER not in request.properties:
        raise ValueError("the message is not a request: no producer waits for a reply")
    return {**properties, "MSG_TYPE": "reply"}


def topic_of_reply(request: Message) -> str:
    """Return the topic that replies to a request go to."""
    return request.properties[CLUSTER] + REPLY_TOPIC


def _number(command: Command, name: str) -> int:
    text = command.ext.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() else 0
