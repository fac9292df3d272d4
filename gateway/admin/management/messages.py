"""Messages that are published and taken through the API: a few at a time, to look at."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal

from pamqp.commands import Basic
from pydantic import BaseModel, Field

from gateway.admin.login import Member
from gateway.admin.management.amqp_link import Message, open_link
from gateway.admin.management.any_names import Publish
from gateway.admin.management.declared import Table
from gateway.admin.management.failures import bad_request
from gateway.admin.management.listing import Item
from gateway.admin.management.places import get_queue, get_vhost, real_name
from gateway.admin.management.properties import read_properties, tell_properties
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import View

MESSAGES = Routes()
COUNT_MAX = 1_000  # chosen: all of them are in memory and in one answer
BASE64 = "base64"
ACKS = ("ack_requeue_false", "reject_requeue_false")


class PublishBody(BaseModel):
    """A message to be published."""

    routing_key: str
    payload: str
    payload_encoding: Literal["string", "base64"]
    properties: Table


class GetBody(BaseModel):
    """How messages are taken; `ackmode` says what becomes of them."""

    count: Annotated[int, Field(ge=1, le=COUNT_MAX)]
    ackmode: Literal["ack_requeue_true", "ack_requeue_false", "reject_requeue_true", "reject_requeue_false"]
    encoding: Literal["auto", "base64"]
    truncate: Annotated[int | None, Field(ge=0)] = None


@MESSAGES.post("/exchanges/{vhost}/{name}/publish")
async def publish(view: View, member: Member, vhost: PathName, name: PathName, wanted: PublishBody) -> Item:
    """Publish a message; tell whether it went to a queue, once it is stored."""
    get_vhost(view, vhost)
    try:
        content = (
            base64.b64decode(wanted.payload, validate=True)
            if wanted.payload_encoding == BASE64
            else wanted.payload.encode()
        )
    except binascii.Error as error:
        raise bad_request(f"the payload is not base64: {error}") from error
    method = Publish(0, real_name(name), wanted.routing_key, True)  # noqa: FBT003 - mandatory
    async with open_link(view, member, vhost) as link:
        return {"routed": await link.publish(method, read_properties(wanted.properties), content)}


@MESSAGES.post("/queues/{vhost}/{name}/get")
async def get_messages(view: View, member: Member, vhost: PathName, name: PathName, wanted: GetBody) -> list[Item]:
    """Take messages from a queue, and give them back or not."""
    get_queue(get_vhost(view, vhost), name)
    found: list[Message] = []
    async with open_link(view, member, vhost) as link:
        while len(found) < wanted.count:
            message = await link.get(name, no_ack=False)
            if message is None:
                break
            found.append(message)
        if found and wanted.ackmode == "ack_requeue_false":
            link.tell(Basic.Ack(0, True))  # noqa: FBT003 - all of them
        elif found:
            link.tell(Basic.Nack(0, True, wanted.ackmode not in ACKS))  # noqa: FBT003 - all of them
    return [_tell_message(message, wanted) for message in found]


def _tell_message(message: Message, wanted: GetBody) -> Item:
    method = message.method
    assert isinstance(method, Basic.GetOk)
    shown = message.body if wanted.truncate is None else message.body[: wanted.truncate]
    encoding, payload = tell_payload(shown, is_text_wanted=wanted.encoding == "auto")
    return {
        "payload_bytes": len(message.body),
        "redelivered": method.redelivered,
        "exchange": method.exchange,
        "routing_key": method.routing_key,
        "message_count": method.message_count,
        "properties": tell_properties(message.properties),
        "payload": payload,
        "payload_encoding": encoding,
    }


def tell_payload(body: bytes, *, is_text_wanted: bool) -> tuple[str, str]:
    """Return how a body is told, and the body so: as text where it is one and that is wanted, else in base64."""
    if is_text_wanted:
        try:
            return "string", body.decode()
        except UnicodeDecodeError:
            pass
    return BASE64, base64.b64encode(body).decode()
