"""Frames as RocketMQ's clients send them, and a run of sends read from them."""

from __future__ import annotations

from gateway.rocketmq.send_codec import read_sends
from gateway.rocketmq.send_run import SendRun, UniqCounter
from lmq.remoting.commands import HEADER_JSON, Command, decode_header, encode_command
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.signature import AccessKeys, sign

LOCALHOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


def send_ext(topic: str = "T", properties: str = "", **changes: str) -> dict[str, str]:
    """Return the header fields of a send by their short names; `changes` by letter."""
    ext = {
        "a": "group", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1790000000000",
        "h": "0", "i": properties, "j": "0", "k": "false", "l": "0", "m": "false", "n": "broker-a",
    }  # fmt: skip
    return ext | changes


LONG_NAMES = {
    "a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums", "e": "queueId",
    "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties", "j": "reconsumeTimes",
    "k": "unitMode", "l": "maxReconsumeTimes", "m": "batch", "n": "bname",
}  # fmt: skip


def send_frame(
    body: bytes = b"hello",
    *,
    opaque: int = 1,
    flag: int = 0,
    header_type: int = HEADER_JSON,
    code: int = 310,
    topic: str = "T",
    properties: str = "",
    **changes: str,
) -> bytes:
    """Return the frame of one send; code 10 takes the long names."""
    ext = send_ext(topic, properties, **changes)
    if code == 10:
        ext = {LONG_NAMES[letter]: value for letter, value in ext.items()}
    return encode_command(Command(code, opaque=opaque, flag=flag, ext=ext, body=body, header_type=header_type))


def request_frame(
    code: int, body: bytes = b"", *, opaque: int = 1, flag: int = 0, header_type: int = HEADER_JSON, **ext: object
) -> bytes:
    """Return the frame of any request."""
    texts = {name: str(value) for name, value in ext.items()}
    return encode_command(Command(code, opaque=opaque, flag=flag, ext=texts, body=body, header_type=header_type))


def signed(frame: bytes, keys: AccessKeys) -> bytes:
    """Return the frame as a user sends it that signs its requests."""
    word = int.from_bytes(frame[4:8], "big")
    end = 8 + (word & 0xFFFFFF)
    command = decode_header(word >> 24, frame[8:end], frame[end:])
    sign(command, keys)
    return encode_command(command)


def read_run(data: bytes, origin: bytes = b"", body_bytes_max: int = 1 << 22) -> SendRun:
    """Return the run of the sends that `data` begins with."""
    frames = Frames()
    cut_frames(data, 0, frames, 1 << 24)
    run = SendRun(body_bytes_max, 32_767 - 128, UniqCounter())
    run.begin(data, origin=origin, born_host=LOCALHOST, uniq_prefix=b"7F0000012A9F5A5A5A5A00000000")
    read_sends(frames, 0, run)
    return run


def extra_of(run: SendRun, i: int) -> bytes:
    """Return the encoded properties of the run's message `i`."""
    return bytes(run.batch.extra[run.batch.extra_start[i] : run.batch.extra_end[i]])
