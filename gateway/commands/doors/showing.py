"""How messages that come are shown: a line each, for people or programs."""

from __future__ import annotations

import base64
import json
from enum import StrEnum
from typing import Any

from gateway.commands.doors.traffic import Incoming


class Output(StrEnum):
    """The form of a line."""

    TEXT = "text"
    BODY = "body"
    HEX = "hex"
    JSON = "json"


def show(message: Incoming, output: Output) -> bytes:
    """Return the line of a message, with its end."""
    if output is Output.BODY:
        return message.body + b"\n"
    if output is Output.HEX:
        return f"{message.topic} {message.body.hex()}\n".encode()
    if output is Output.JSON:
        return json.dumps(tell(message), ensure_ascii=False, default=str).encode(errors="replace") + b"\n"
    return message.topic.encode() + b" " + message.body + b"\n"


def tell(message: Incoming) -> dict[str, Any]:
    """Return a message as an object; its body as text where all of it is, else in base64."""
    try:
        body, encoding = message.body.decode(), "string"
    except UnicodeDecodeError:
        body, encoding = base64.b64encode(message.body).decode(), "base64"
    return {
        "topic": message.topic,
        "body": body,
        "encoding": encoding,
        "body_bytes": len(message.body),
        "headers": {name: _plain(value) for name, value in message.headers.items()},
        "properties": message.properties,
    }


def _plain(value: object) -> object:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
