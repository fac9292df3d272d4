"""A remoting command, its two header encodings, and the frame around it.

A frame is `i4 length, u1 header type, u3 header length, header, body`; the length does not count itself. The header
is JSON or RocketMQ's binary form. The runs of sends on the data path are read by the gateway in place instead.

Source: docs/protocols/rocketmq.md, "Frames and headers".
"""

from __future__ import annotations

import json
import struct
from typing import Any

from lmq.remoting.errors import FrameError

HEADER_JSON = 0
HEADER_BINARY = 1
FLAG_RESPONSE = 0x1
FLAG_ONE_WAY = 0x2
LANGUAGES = ("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS") + (
    "RUST",
    "NODE_JS",
)  # by ordinal
LANGUAGE_JAVA = 0
LANGUAGE_OTHER = 7  # its place in LANGUAGES
VERSION = 493  # MQVersion.V5_4_0: what we report, so that clients use what a 5.x broker can do
FRAME_PREFIX_BYTES = 8  # the frame's length 4, the header's with its type 4

_JSON_SPACES = " \t\n\r"
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_DECODER = json.JSONDecoder(strict=False)
_LANGUAGE_NUMBERS = {name: number for number, name in enumerate(LANGUAGES)}
_PREFIX = struct.Struct(">iI")
_BINARY_START = struct.Struct(">hBhii")
_LENGTH_16 = struct.Struct(">H")
_LENGTH_32 = struct.Struct(">i")


class Command:
    """A request or a response; `ext` holds the typed header fields as text."""

    __slots__ = ("body", "code", "ext", "flag", "header_type", "language", "opaque", "remark", "version")

    def __init__(
        self,
        code: int,
        opaque: int = 0,
        flag: int = 0,
        ext: dict[str, str] | None = None,
        *,
        body: bytes | bytearray | memoryview = b"",
        remark: str | None = None,
        version: int = VERSION,
        language: int = LANGUAGE_JAVA,
        header_type: int = HEADER_JSON,
    ) -> None:
        self.code = code
        self.opaque = opaque
        self.flag = flag
        self.ext = {} if ext is None else ext
        self.body = body
        self.remark = remark
        self.version = version
        self.language = language
        self.header_type = header_type

    @property
    def is_response(self) -> bool:
        """Whether this answers a request of ours."""
        return bool(self.flag & FLAG_RESPONSE)

    @property
    def is_one_way(self) -> bool:
        """Whether the peer wants no answer, not even an error."""
        return bool(self.flag & FLAG_ONE_WAY)


def answer(
    request: Command,
    code: int,
    remark: str | None = None,
    *,
    ext: dict[str, str] | None = None,
    body: bytes | bytearray | memoryview = b"",
) -> Command:
    """Return the response to `request`, in its header encoding and with its opaque."""
    return Command(
        code=int(code),
        opaque=request.opaque,
        flag=FLAG_RESPONSE,
        ext=ext if ext is not None else {},
        body=body,
        remark=remark,
        header_type=request.header_type,
    )


def encode_json(value: object) -> bytes:
    """Return `value` as JSON without a space: the Go client cuts it up as text."""
    return _ENCODER.encode(value).encode()


def encode_command(command: Command) -> bytes:
    """Return the whole frame of `command`."""
    header = encode_header(command)
    size = 4 + len(header) + len(command.body)
    prefix = _PREFIX.pack(size, command.header_type << 24 | len(header))
    return b"".join((prefix, header, command.body))


def encode_header(command: Command) -> bytes:
    """Return the header of `command` in its header type."""
    if command.header_type == HEADER_BINARY:
        return _encode_binary(command)
    return _encode_json(command)


def encode_prefix(header: bytes, header_type: int, body_bytes: int) -> bytes:
    """Return the eight bytes that stand before `header`, for a body of that size which follows."""
    return _PREFIX.pack(4 + len(header) + body_bytes, header_type << 24 | len(header))


def decode_header(header_type: int, header: bytes, body: bytes | memoryview = b"") -> Command:
    """Return the command of a header and its body.

    Raises:
        FrameError: The header is not what its type promises.
    """
    try:
        if header_type == HEADER_BINARY:
            return _decode_binary(header, body)
        return _decode_json(header, body)
    except (ValueError, RecursionError, struct.error) as error:
        raise FrameError(f"unreadable header: {error}") from error


def _encode_json(command: Command) -> bytes:
    fields: dict[str, Any] = {
        "code": command.code,
        "extFields": command.ext,
        "flag": command.flag,
        "language": LANGUAGES[command.language],
        "opaque": command.opaque,
    }
    if command.remark is not None:
        fields["remark"] = command.remark
    fields["serializeTypeCurrentRPC"] = "JSON"
    fields["version"] = command.version
    return _ENCODER.encode(fields).encode()


def _decode_json(header: bytes, body: bytes | memoryview) -> Command:
    text = header.decode().strip(_JSON_SPACES)
    fields, end = _DECODER.raw_decode(text)
    if end < len(text):
        raise FrameError("unreadable header: more than an object")
    if not isinstance(fields, dict):
        raise FrameError("unreadable header: not an object")
    ext = fields.get("extFields")
    remark = fields.get("remark")
    is_plain = header.isascii() and b"\\u" not in header  # so no text can be half of a surrogate pair
    return Command(
        code=_integer(fields, "code"),
        opaque=_integer(fields, "opaque"),
        flag=_integer(fields, "flag"),
        ext=_texts(ext, is_plain=is_plain) if isinstance(ext, dict) else {},
        body=body,
        remark=None if remark is None else _checked(str(remark)),
        version=_integer(fields, "version"),
        language=_LANGUAGE_NUMBERS.get(str(fields.get("language")), LANGUAGE_OTHER),
        header_type=HEADER_JSON,
    )


def _integer(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name, 0)
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise ValueError(f"{name} is not a 32-bit integer")
    return value


def _texts(ext: dict[str, Any], *, is_plain: bool) -> dict[str, str]:
    """Return the fields as text: some clients send numbers and booleans as such."""
    if is_plain and _are_texts(ext):
        return ext
    texts: dict[str, str] = {}
    for name, value in ext.items():
        if isinstance(value, str):
            texts[_checked(name)] = _checked(value)
        elif isinstance(value, bool):
            texts[_checked(name)] = "true" if value else "false"
        elif isinstance(value, (int, float)):
            texts[_checked(name)] = str(value)
    return texts


def _are_texts(ext: dict[str, Any]) -> bool:
    for value in ext.values():  # noqa: SIM110 - a loop is compiled to one, `all` makes a generator
        if type(value) is not str:
            return False
    return True


def _checked(text: str) -> str:
    """Return `text`; a lone half of a surrogate pair cannot be written as UTF-8 and raises ValueError."""
    if not text.isascii():
        text.encode()
    return text


def _encode_binary(command: Command) -> bytes:
    remark = (command.remark or "").encode()
    ext = b"".join([_encode_entry(name, value) for name, value in command.ext.items()])
    start = _BINARY_START.pack(command.code, command.language, command.version, command.opaque, command.flag)
    return b"".join((start, _LENGTH_32.pack(len(remark)), remark, _LENGTH_32.pack(len(ext)), ext))


def _encode_entry(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return b"".join((_LENGTH_16.pack(len(key)), key, _LENGTH_32.pack(len(text)), text))


def _decode_binary(header: bytes, body: bytes | memoryview) -> Command:
    code, language, version, opaque, flag = _BINARY_START.unpack_from(header)
    remark, pos = _read_piece(header, _BINARY_START.size)
    ext, end = _read_piece(header, pos)
    if end != len(header):
        raise ValueError("bytes after the header's end")
    return Command(
        code=code,
        opaque=opaque,
        flag=flag,
        ext=_decode_entries(ext),
        body=body,
        remark=remark.decode() if remark else None,
        version=version,
        language=language if language < len(LANGUAGES) else LANGUAGE_OTHER,
        header_type=HEADER_BINARY,
    )


def _decode_entries(ext: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    pos = 0
    while pos < len(ext):
        (key_bytes,) = _LENGTH_16.unpack_from(ext, pos)
        key = ext[pos + 2 : pos + 2 + key_bytes]
        if len(key) != key_bytes:
            raise ValueError("a name past the end")
        value, pos = _read_piece(ext, pos + 2 + key_bytes)
        found[key.decode()] = value.decode()
    return found


def _read_piece(header: bytes, pos: int) -> tuple[bytes, int]:
    (size,) = _LENGTH_32.unpack_from(header, pos)
    end = pos + 4 + size
    if size < 0 or end > len(header):
        raise ValueError("a length past the end")
    return header[pos + 4 : end], end
