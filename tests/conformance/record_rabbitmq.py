"""Have the exchanges with a RabbitMQ and print its replies: `python -m tests.conformance.record_rabbitmq HOST:PORT`.

With `arguments` behind it, declare the queues of `queue_arguments.py` instead.
Its user guest must be let in, nobody else be there, and its answers take less than `QUIET_S`.
"""

from __future__ import annotations

import json
import select
import socket
import sys

from pamqp import frame
from pamqp.commands import Connection, Exchange, Queue

from tests.conformance.amqp_exchanges import EXCHANGES
from tests.conformance.amqp_steps import CAPABILITIES, Channel, Step, show, steps_of
from tests.conformance.queue_arguments import CASES, declaration
from tests.support import amqp

QUIET_S = 0.1


class Peer:
    """One connection with channel 1 open."""

    def __init__(self, address):
        self.sock = socket.create_connection(address)
        self.data = b""
        self.is_over = False
        self.sock.sendall(amqp.PROTOCOL_HEADER)
        said = Connection.StartOk({"capabilities": CAPABILITIES}, "PLAIN", "\0guest\0guest", "en_US")
        for method in (said, Connection.TuneOk(2_047, 131_072, 0), Connection.Open("/")):
            self.read()
            self.sock.sendall(amqp.method(0, method))
        self.sock.sendall(amqp.method(1, Channel.Open()))
        while "1 channel.openok" not in self.read():
            pass

    def say(self, step):
        """Send, and return what comes."""
        self.sock.sendall(step.data)
        return self.read()

    def read(self):
        """Return what comes until it is quiet."""
        lines = []
        while not self.is_over and select.select([self.sock], [], [], QUIET_S)[0]:
            try:
                data = self.sock.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            self.is_over = not data
            self.data += data
        while self.data:
            size, channel, value = frame.unmarshal(self.data)
            lines.append(show(channel, value))
            self.data = self.data[size:]
        return [*lines, "end"] if self.is_over else lines


def have(address, exchange):
    """Return the replies of one exchange, those to the other connection marked so."""
    cleaner = Peer(address)
    for method in (Queue.Delete(queue="q"), Exchange.Delete(exchange="x")):
        cleaner.say(Step(method))
    cleaner.sock.close()
    peers = [Peer(address), Peer(address)]
    lines = []
    for step in steps_of(exchange):
        peers[step.by_other].sock.sendall(step.data)
        lines += peers[0].read() + [f"other {line}" for line in peers[1].read()]
        if peers[0].is_over:
            break
    for peer in peers:
        peer.sock.close()
    return lines


def ask(peer, step):
    """Send, and return what comes, however long that takes."""
    lines = peer.say(step)
    while not lines:
        lines = peer.read()
    return lines


def declare_all(address):
    """Return the first line of the reply to each declaration."""
    replies = {}
    peer = Peer(address)
    for case in CASES:
        replies[case] = ask(peer, Step(declaration(case)))[0]
        if "channel.close" in replies[case]:
            peer.sock.sendall(Step(Channel.CloseOk()).data)
            ask(peer, Step(Channel.Open()))
        elif peer.is_over or "connection.close" in replies[case]:
            peer = Peer(address)
        else:
            ask(peer, Step(Queue.Delete(queue="q")))
    return replies


def main():
    host, _, port = sys.argv[1].partition(":")
    address = (host, int(port))
    if "arguments" in sys.argv[2:]:
        replies = declare_all(address)
    else:
        replies = {name: have(address, exchange) for name, exchange in EXCHANGES.items()}
    json.dump(replies, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
