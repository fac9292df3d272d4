"""The one topic space: AMQP routing keys and binding keys in the form of MQTT topics and filters, and back.

The canonical form is MQTT's: levels between `/`, `+` for one level, `#` for any number of levels, here anywhere.
What one side cannot write is percent-escaped, so that nothing collides and each conversion can be undone:

| AMQP, words between `.` | here, levels between `/` |
|---|---|
| `/`, `+`, `#` inside a literal word | `%2F`, `%2B`, `%23` |
| `%2E` | `.` inside a level |
| the literal word `*` (in a routing key) | the level `%2A` |
| the literal word `%2A` | the level `*` |
| `%2F`, `%2B`, `%23` as text | `%252F`, `%252B`, `%2523`: one more `25` each time |
| `%252E`: one more `25` each time | `%2E` as text |

Any other `%` stands for itself. So a binding key matches a routing key where its filter matches the topic.
Topics hold no `+` and no `#`; filters hold them as whole levels only: the doors have checked that.
"""

from __future__ import annotations

import re

_KEY_SPECIAL = re.compile(rb"[/+#%*]")
_KEY_TOKEN = re.compile(rb"[./+#]|%((?:25)*)(2F|2B|23|2E)")
_TOPIC_SPECIAL = re.compile(rb"[.%*]")
_TOPIC_TOKEN = re.compile(rb"[./]|%((?:25)*)(2F|2B|23|2E)")
_TO_TOPIC = {b".": b"/", b"/": b"%2F", b"+": b"%2B", b"#": b"%23", b"%2E": b"."}
_TO_KEY = {b"/": b".", b".": b"%2E", b"%2F": b"/", b"%2B": b"+", b"%23": b"#"}
_STAR = b"*"
_ESCAPED_STAR = b"%2A"
_SWAPPED = {_STAR: _ESCAPED_STAR, _ESCAPED_STAR: _STAR}
_FILTER_WORD = {b"*": b"+", b"#": b"#"}
_BINDING_WORD = {b"+": b"*", b"#": b"#"}


def split_levels(topic: bytes) -> list[bytes]:
    """Return the levels of a topic or filter; the empty one has none, as AMQP's empty key has no word."""
    return topic.split(b"/") if topic else []


def topic_from_routing_key(routing_key: bytes) -> bytes:
    """Return the topic of an AMQP routing key."""
    if _KEY_SPECIAL.search(routing_key) is None:
        return routing_key.replace(b".", b"/")
    return b"/".join([_level(word) for word in routing_key.split(b".")])


def routing_key_from_topic(topic: bytes) -> bytes:
    """Return the AMQP routing key of a topic; it can be longer than the 255 bytes that AMQP has room for."""
    if _TOPIC_SPECIAL.search(topic) is None:
        return topic.replace(b"/", b".")
    return b".".join([_word(level) for level in topic.split(b"/")])


def filter_from_binding_key(binding_key: bytes) -> bytes:
    """Return the filter of a topic exchange's binding key."""
    return b"/".join([_FILTER_WORD.get(word) or _level(word) for word in binding_key.split(b".")])


def binding_key_from_filter(topic_filter: bytes) -> bytes:
    """Return the binding key of a filter.

    AMQP cannot bind the literal words `*` and `#`: the levels `%2A` and `%23` become wildcards, which match them too.
    """
    return b".".join([_BINDING_WORD.get(level) or _word(level) for level in topic_filter.split(b"/")])


def _level(word: bytes) -> bytes:
    return _SWAPPED.get(word) or _KEY_TOKEN.sub(_token_to_topic, word)


def _word(level: bytes) -> bytes:
    return _SWAPPED.get(level) or _TOPIC_TOKEN.sub(_token_to_key, level)


def _token_to_topic(found: re.Match[bytes]) -> bytes:
    token = found[0]
    short = _TO_TOPIC.get(token)
    if short is not None:
        return short
    return b"%25" + token[1:] if found[2] != b"2E" else b"%" + token[3:]


def _token_to_key(found: re.Match[bytes]) -> bytes:
    token = found[0]
    short = _TO_KEY.get(token)
    if short is not None:
        return short
    return b"%" + token[3:] if found[2] != b"2E" else b"%25" + token[1:]
