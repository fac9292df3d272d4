"""Messages to be sent, and the properties that they are sent with."""

from __future__ import annotations

import itertools
import math
import os
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lmq.arguments import check_count, check_is
from lmq.remoting.message_codec import BatchItem, encode_batch, encode_properties_text

SHARDING_KEY = "__SHARDINGKEY"


@dataclass(slots=True)
class OutMessage:
    """A message to be sent; see `Producer.send`."""

    topic: str
    body: bytes
    tags: str = ""
    keys: Sequence[str] | str = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    queue_id: int | None = None
    dispatch: Sequence[str] | str = ()
    flag: int = 0
    deliver_at: datetime | None = None
    delay: timedelta | float | None = None
    delay_level: int = 0
    sharding_key: str = ""


def encode_properties(message: OutMessage, key: str) -> str:
    """Return the message's properties as text.

    Args:
        message: The message.
        key: Its UNIQ_KEY, unless it has one.

    Raises:
        TypeError: The body is not made of bytes, or what is text is something else.
        ValueError: A property cannot be carried, or the moment is said twice.
    """
    _check_types(message)
    items = {"UNIQ_KEY": key, "WAIT": "true"} | dict(message.properties)
    if message.tags:
        items["TAGS"] = message.tags
    keys = _listed("keys", message.keys)
    if any(len(word.split()) != 1 for word in keys):
        raise ValueError(f"keys {keys!r}: one that is empty, or holds a space, is not found again")
    if keys:
        items["KEYS"] = " ".join(keys)
    if message.dispatch:
        items["INNER_MULTI_DISPATCH"] = ",".join(_listed("dispatch", message.dispatch))
    if message.sharding_key:
        items[SHARDING_KEY] = message.sharding_key
    items |= _moment_of(message)
    encoded = {name.encode(): value.encode() for name, value in items.items()}
    for name, value in encoded.items():
        if not name or any(separator in name + value for separator in (b"\x01", b"\x02")):
            raise ValueError(f"property {name!r} holds a separator, or has no name")
    return encode_properties_text(encoded)


def join_batch(messages: Sequence[OutMessage], keys: Sequence[str]) -> OutMessage:
    """Return messages as one, whose body is a batch.

    Args:
        messages: The messages.
        keys: Their UNIQ_KEYs.

    Raises:
        ValueError: There is none; they are of several topics or queues; or one is to come later.
    """
    if len({(message.topic, message.queue_id, message.sharding_key) for message in messages}) != 1:
        raise ValueError("a batch has one topic, one queue, and at least one message")
    if any(_moment_of(message) for message in messages):
        raise ValueError("no message of a batch can be delayed")
    items = [
        BatchItem(message.flag, message.body, encode_properties(message, key).encode())
        for message, key in zip(messages, keys, strict=True)
    ]
    first = messages[0]
    return OutMessage(first.topic, encode_batch(items), queue_id=first.queue_id, sharding_key=first.sharding_key)


def _check_types(message: OutMessage) -> None:
    check_is("message", message, OutMessage)
    body: object = message.body
    if isinstance(body, str):
        raise TypeError("the body is a str; a message is made of bytes: body.encode()")
    check_is("body", body, bytes, bytearray, memoryview)
    for name in ("topic", "tags", "sharding_key"):
        check_is(name, getattr(message, name), str)
    check_count("flag", message.flag, -(1 << 31), (1 << 31) - 1)
    if message.queue_id is not None:
        check_count("queue_id", message.queue_id, 0)
    properties: object = message.properties
    check_is("properties", properties, Mapping)
    assert isinstance(properties, Mapping)
    for key, value in properties.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"properties={{{key!r}: {value!r}}}: names and values are to be str")


def _listed(name: str, words: Sequence[str] | str) -> list[str]:
    """Return a list of words; a str is one."""
    given: object = words
    if isinstance(words, str):
        return [words] if words else []
    if not isinstance(given, Iterable):
        raise TypeError(f"{name}={words!r} is of type {type(words).__name__}; it is to be a str, or several")
    for word in (listed := list(words)):
        check_is(f"one of {name}", word, str)
    return listed


def _moment_of(message: OutMessage) -> dict[str, str]:
    """Return the property that says when a message is to come, where it is not at once."""
    if sum((message.deliver_at is not None, message.delay is not None, bool(message.delay_level))) > 1:
        raise ValueError("deliver_at, delay and delay_level exclude each other")
    check_count("delay_level", message.delay_level, 0)
    if message.delay_level:
        return {"DELAY": str(message.delay_level)}
    if message.deliver_at is not None:
        check_is("deliver_at", message.deliver_at, datetime)
        return {"TIMER_DELIVER_MS": str(math.ceil(message.deliver_at.timestamp() * 1000))}
    if message.delay is None:
        return {}
    check_is("delay", message.delay, timedelta, int, float)
    delay_s = message.delay.total_seconds() if isinstance(message.delay, timedelta) else message.delay
    if not math.isfinite(delay_s):
        raise ValueError(f"delay={delay_s} is not a time")
    return {"TIMER_DELAY_MS": str(math.ceil(delay_s * 1000))}


class KeyMaker:
    """Makes UNIQ_KEYs: 32 hexadecimal digits that no other producer makes."""

    def __init__(self) -> None:
        self._start = f"7F000001{os.getpid() & 0xFFFF:04X}{secrets.token_hex(4).upper()}"
        self._counter = itertools.count()

    def make(self) -> str:
        """Return another key."""
        number = next(self._counter)
        return f"{self._start}{(time.time_ns() // 1_000_000) & 0xFFFFFFFF:08X}{number & 0xFFFF:04X}"
