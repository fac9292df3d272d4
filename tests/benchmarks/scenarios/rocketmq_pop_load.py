"""A RocketMQ load by POP: messages are taken 32 at a time, and each is acknowledged by a request of its own."""

from __future__ import annotations

from lmq.remoting.commands import HEADER_JSON, VERSION, Command, decode_header, encode_command
from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, measure, no_probe
from tests.benchmarks.scenarios.rocketmq_load import (
    FRAME_HEAD,
    HEADERS,
    TOPIC,
    RemotingPeer,
    check,
    fill,
    open_peer,
)

POP_MESSAGE, ACK_MESSAGE = 200_050, 200_051
COUNT_MAX = 32
GROUPS_MAX = 1_000  # of one connection
UNANSWERED_MAX = 64  # acknowledgements under way when the next messages are asked for
_ACK = (
    b'{"code":200051,"extFields":{"consumerGroup":"%b","extraInfo":"%b bench 0 %b","offset":"%b","queueId":"0",'
    b'"topic":"bench"},"flag":0,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":'
    + b"%d}"
    % VERSION
)


def pop_frame(group: str) -> bytes:
    """Return a request for messages of queue 0 of the topic, which does not wait; a new group begins at the first."""
    ext = {"consumerGroup": group, "topic": TOPIC, "queueId": "0", "maxMsgNums": str(COUNT_MAX), "pollTime": "0"}
    ext |= {"invisibleTime": "60000", "bornTime": "0", "initMode": "0", "expType": "TAG", "exp": "*", "order": "false"}
    return encode_command(Command(POP_MESSAGE, 2, ext=ext, header_type=HEADERS))


class Popper(RemotingPeer):
    """Takes and acknowledges as one group; when that has all, as another, which begins at the first message again."""

    def configure(self, groups: list[str]) -> None:
        """Say which groups these are, one after the other."""
        self.groups = iter(groups)
        self.group = next(self.groups)
        self.unanswered = 0
        self.is_asked_for = False

    def start(self) -> None:
        """Begin to take."""
        self.is_running = True
        self.ask()

    def ask(self) -> None:
        """Ask for messages, where not too much is under way."""
        if self.is_running and not self.is_asked_for and self.unanswered < UNANSWERED_MAX:
            self.is_asked_for = True
            self.transport.write(pop_frame(self.group))
            self.count.sent += 1

    def take(self, data: bytes, body: int, end: int) -> None:
        """One answer: to the request for messages, or to an acknowledgement, which has no fields."""
        start = data.rfind(b'{"code":', 0, body)
        header = data[start:body]
        if b"popTime" not in header:
            self.unanswered -= 1
            self.count.received += 1
            return
        self.is_asked_for = False
        ext = decode_header(HEADER_JSON, header).ext
        if body == end:
            self.failure, self.refused = b"", 0  # nothing left is no failure
            self.group = next(self.groups)
            return
        self.acknowledge(ext)

    def acknowledge(self, ext: dict[str, str]) -> None:
        """Say of each message of an answer that it is done."""
        _, _, start = ext["startOffsetInfo"].split(" ")
        offsets = ext["msgOffsetInfo"].split(" ")[2].encode().split(b",")
        receipt = f"{start} {ext['popTime']} {ext['invisibleTime']} {ext['reviveQid']} 0".encode()
        group = self.group.encode()
        frames = []
        for offset in offsets:
            header = _ACK % (group, receipt, offset, offset)
            frames += (FRAME_HEAD.pack(4 + len(header), len(header)), header)
        self.unanswered += len(offsets)
        self.count.acked += len(offsets)
        self.transport.write(b"".join(frames))

    def took(self, answers: int) -> None:
        """Ask for more, where there is room."""
        if answers:
            self.ask()


async def run_pop(
    host: str,
    port: int,
    *,
    secs: float,
    connections: int = 8,
    stored: int = 50_000,
    payload_bytes: int = 1_024,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Store `stored` messages, then take and acknowledge them, each connection as groups of its own."""
    count = Count()
    await fill(host, port, stored, payload_bytes)
    poppers = [await open_peer(host, port, Popper(count)) for _ in range(connections)]
    for number, popper in enumerate(poppers):
        popper.configure([f"bench{number}-{turn}" for turn in range(GROUPS_MAX)])
        popper.start()
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    for popper in poppers:
        popper.is_running = False
    await drain(count, lambda: count.received >= count.acked)
    result.lost = count.acked - count.received
    check(poppers)
    for popper in poppers:
        popper.transport.abort()
    return result
