"""A name server and broker in one, whose answers a test scripts, with a topic of its own."""

from __future__ import annotations

from lmq.remoting.commands import Command, answer, encode_json
from lmq.routes import Routes
from tests.support.remoting_server import RemotingServer


def serve_topics(server: RemotingServer, queues: int = 2, name: str = "b") -> None:
    """Have `server` answer that every topic, and every light queue, is on itself."""
    broker = {"brokerAddrs": {"0": server.address}, "brokerName": name, "cluster": "c"}
    queue_data = {"brokerName": name, "readQueueNums": queues, "writeQueueNums": queues, "perm": 6}
    route = encode_json({"brokerDatas": [broker], "queueDatas": [queue_data]})
    server.on[105] = lambda request: answer(request, 0, body=route)
    table = encode_json({"brokerAddrTable": {name: broker}})
    server.on[106] = lambda request: answer(request, 0, body=table)


def routes_to(server: RemotingServer, timeout_s: float = 1) -> Routes:
    """Return routes by way of `server`."""
    return Routes(server.address, timeout_s=timeout_s, greeting=lambda: Command(34, body=b"{}"))
