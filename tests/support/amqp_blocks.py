"""Property blocks of AMQP as bytes, and what they say: the fields of `tests/support/crossing.py`."""

from __future__ import annotations

import struct

AMQP_ONLY = {
    "content encoding": (b"x-amqp-content-encoding", 1),
    "priority": (b"x-amqp-priority", 4),
    "message id": (b"x-amqp-message-id", 8),
    "timestamp": (b"x-amqp-timestamp", 9),
    "type": (b"x-amqp-type", 10),
    "user id": (b"x-amqp-user-id", 11),
    "app id": (b"x-amqp-app-id", 12),
    "cluster id": (b"x-amqp-cluster-id", 13),
}
OWN_HEADERS = {
    b"x-client-id", b"x-user", b"x-protocol", b"timestamp_in_ms", b"x-mqtt-publish-qos", b"x-mqtt-retain",
    b"x-opt-reply-to-topic", b"x-mqtt-payload-format", b"x-correlation-id",
}  # fmt: skip
OF_HEADERS = {
    b"x-opt-reply-to-topic": "response topic",
    b"x-mqtt-payload-format": "payload format",
    b"x-correlation-id": "correlation",
    b"timestamp_in_ms": "born",
}


def encode_block(said):
    """Return the property block that says it."""
    pieces = {3: bytes((said.get("qos", 1) + 1,))}
    for name, (_, number) in AMQP_ONLY.items():
        if name in said:
            pieces[number] = _number(number, said[name]) if number in {4, 9} else _short(said[name])
    if "content type" in said:
        pieces[0] = _short(said["content type"])
    if "time to live" in said:
        pieces[7] = _short(b"%d" % (said["time to live"] * 1000))
    if "response topic" in said and b"." not in said["response topic"]:
        pieces[6] = _short(said["response topic"].replace(b"/", b"."))
    if len(said.get("correlation", b"x" * 256)) <= 255:
        pieces[5] = _short(said["correlation"])
    if headers := _encode_headers(said):
        pieces[2] = _sized(headers)
    flags = 0
    for number in pieces:
        flags |= 0x8000 >> number
    return struct.pack(">H", flags) + b"".join(pieces[number] for number in sorted(pieces))


def _encode_headers(said):
    headers = [(name, value.decode()) for name, value in said.get("user properties", ())]
    headers += [(name, value) for name, value, _ in said.get("typed headers", ())]
    headers += zip((b"KEYS", b"TAGS"), (one.decode() for one in said.get("keys and tags", ())), strict=False)
    if "payload format" in said:
        headers.append((b"x-mqtt-payload-format", said["payload format"]))
    if b"." in said.get("response topic", b""):
        headers.append((b"x-opt-reply-to-topic", said["response topic"].decode()))
    if len(said.get("correlation", b"")) > 255:
        headers.append((b"x-correlation-id", said["correlation"]))
    return table(headers)


def _number(number, value):
    return bytes((value,)) if number == 4 else struct.pack(">Q", value)


def _read_block(block):
    """Return the values of a property block by their numbers."""
    (flags,) = struct.unpack_from(">H", block)
    pos = 2
    found = {}
    for number in range(14):
        if not flags & (0x8000 >> number):
            continue
        if number == 2:
            size = int.from_bytes(block[pos : pos + 4], "big")
            found[2] = list(_entries(block, pos + 4, pos + 4 + size))
            pos += 4 + size
        elif number in {3, 4, 9}:
            size = 8 if number == 9 else 1
            found[number] = int.from_bytes(block[pos : pos + size], "big")
            pos += size
        else:
            found[number] = block[pos + 1 : pos + 1 + block[pos]]
            pos += 1 + block[pos]
    assert pos == len(block)
    return found


def decode_block(block):
    """Return what a property block says."""
    found = _read_block(block)
    headers = dict(found.get(2, ()))
    fields = {"qos": headers.get(b"x-mqtt-publish-qos", found.get(3, 1) - 1)}
    names = {0: "content type", 5: "correlation"} | {number: name for name, (_, number) in AMQP_ONLY.items()}
    fields |= {name: found[number] for number, name in names.items() if number in found}
    if 7 in found:
        fields["time to live"] = int(found[7]) // 1000
    if 6 in found:
        fields["response topic"] = found[6].replace(b".", b"/")
    fields |= {name: headers[header] for header, name in OF_HEADERS.items() if header in headers}
    if headers.get(b"x-mqtt-retain"):
        fields["retain"] = True
    if b"x-protocol" in headers:
        protocol = headers[b"x-protocol"]
        fields["publisher"] = (protocol, headers.get(b"x-client-id" if protocol == b"mqtt" else b"x-user", b""))
    if b"KEYS" in headers and b"TAGS" in headers:
        fields["keys and tags"] = (headers[b"KEYS"], headers[b"TAGS"])
    users = [one for one in found.get(2, ()) if one[0] not in OWN_HEADERS | {b"KEYS", b"TAGS", b"UNIQ_KEY"}]
    fields["user properties"] = [one for one in users if _is_text(one[1])]
    return fields | {"typed": [one for one in users if not _is_text(one[1])]}


def _is_text(value):
    return isinstance(value, bytes) and not isinstance(value, Binary)


class Binary(bytes):
    """A byte array, as it differs from a text."""


def _short(text):
    return bytes((len(text),)) + text


def _sized(text):
    return len(text).to_bytes(4, "big") + text


_FORMS = {bool: ">?", int: ">q", float: ">d"}
_LETTERS = {bool: b"t", int: b"l", float: b"d", dict: b"F", list: b"A", bytes: b"x", str: b"S", type(None): b"V"}


def _value(value):
    if isinstance(value, dict):
        raw = _sized(table((name.encode(), one) for name, one in value.items()))
    elif isinstance(value, list):
        raw = _sized(b"".join(_value(one) for one in value))
    elif isinstance(value, str | bytes):
        raw = _sized(value.encode() if isinstance(value, str) else value)
    else:
        raw = b"" if value is None else struct.pack(_FORMS[type(value)], value)
    return _LETTERS[type(value)] + raw


def table(headers):
    """Return the entries of a field table."""
    return b"".join(_short(name) + _value(value) for name, value in headers)


def _entries(block, pos, end):
    while pos < end:
        name = block[pos + 1 : pos + 1 + block[pos]]
        value, pos = _parse(block, pos + 1 + block[pos])
        yield name, value


def _parse(block, pos):
    """Return the value at `pos`, and the position after it."""
    kind = chr(block[pos])
    pos += 1
    if kind == "t":
        return block[pos] != 0, pos + 1
    if kind == "V":
        return None, pos
    if kind in "bld":
        size, form = {"b": (1, ">b"), "l": (8, ">q"), "d": (8, ">d")}[kind]
        return struct.unpack_from(form, block, pos)[0], pos + size
    end = pos + 4 + int.from_bytes(block[pos : pos + 4], "big")
    pos += 4
    if kind == "F":
        return {name.decode(): _plain(value) for name, value in _entries(block, pos, end)}, end
    if kind == "A":
        items = []
        while pos < end:
            value, pos = _parse(block, pos)
            items.append(_plain(value))
        return items, end
    assert kind in "Sx", kind
    return (block[pos:end] if kind == "S" else Binary(block[pos:end])), end


def _plain(value):
    return value.decode() if isinstance(value, bytes) else value
