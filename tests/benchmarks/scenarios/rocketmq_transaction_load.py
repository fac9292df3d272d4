"""A RocketMQ load of transactions: half messages in flight, each committed when its answer comes."""

from __future__ import annotations

import asyncio

from lmq.remoting.commands import HEADER_JSON, Command, decode_header, encode_command
from lmq.remoting.request_codes import RequestCode
from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, measure, no_probe
from tests.benchmarks.scenarios.rocketmq_load import (
    SUCCESS,
    TOPIC,
    Asker,
    Producer,
    max_offset,
    open_peer,
    open_producers,
    settled_offset,
)

GROUP = "bench"
COMMIT = "8"
HALF = f"TRAN_MSG\x01true\x02PGROUP\x01{GROUP}\x02"


def end_frame(header: bytes) -> bytes:
    """Return the commit of the half message whose answer has this header."""
    said = decode_header(HEADER_JSON, header, b"").ext
    ext = {
        "producerGroup": GROUP,
        "tranStateTableOffset": said["queueOffset"],
        "commitLogOffset": str(int(said["msgId"][-16:], 16)),
        "commitOrRollback": COMMIT,
        "fromTransactionCheck": "false",
        "msgId": said.get("transactionId", ""),
        "transactionId": said.get("transactionId", ""),
    }
    return encode_command(Command(RequestCode.END_TRANSACTION, 1, ext=ext, header_type=HEADER_JSON))


class TransactionProducer(Producer):
    """Keeps `window` transactions in flight: of each a half message, then its end."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.ends: list[bytes] = []
        self.over = 0  # transactions, or what was refused

    def take(self, data: bytes, body: int, end: int) -> None:
        header = data[data.rfind(b'{"code":', 0, body) : body]  # both brokers write it first
        if header.startswith(SUCCESS) and b'"msgId"' in header:
            self.ends.append(end_frame(header))
        else:
            self.over += 1

    def took(self, answers: int) -> None:
        over, refused = self.over, self.refused
        self.over = self.refused = 0
        self.refused_in_all += refused
        self.count.acked += over - refused
        self.count.sent -= refused
        if self.ends:
            self.transport.write(b"".join(self.ends))
            self.ends.clear()
        if over and self.is_running:
            self.send(over)


async def run_transactions(
    host: str,
    port: int,
    *,
    secs: float,
    connections: int = 8,
    window: int = 64,
    payload_bytes: int = 1_024,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Send and commit; what counts is what readers can get at the end of the stretch."""
    count = Count()
    makers = await open_producers(host, port, count, 1, 1, b"x" * payload_bytes)  # one plain message makes the topic
    asker = await open_peer(host, port, Asker(Count()))
    begin, _ = await settled_offset(asker, TOPIC, 1)
    producers = [await open_peer(host, port, TransactionProducer(count)) for _ in range(connections)]
    for producer in producers:
        producer.configure(window, b"x" * payload_bytes, HALF)
        producer.start()
    await asyncio.sleep(warm_s)
    before = await max_offset(asker, TOPIC)
    result = await measure(count, secs, warm_s=0, probe=probe)
    result.received = await max_offset(asker, TOPIC) - before
    for producer in producers:
        producer.is_running = False
    await drain(count, lambda: count.acked >= count.sent)
    if refused := sum(producer.refused_in_all for producer in producers):
        result.more["refused"] = refused
    end, is_behind = await settled_offset(asker, TOPIC, begin + count.acked)
    count.is_late |= is_behind
    result.lost = max(0, begin + count.acked - end)
    for peer in (*makers, *producers, asker):
        peer.transport.abort()
    return result
