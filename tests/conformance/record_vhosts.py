"""Play the scenes about virtual hosts with a RabbitMQ and print its answers.

`python -m tests.conformance.record_vhosts HOST:PORT http://HOST:PORT`: the doors of AMQP and of its management API. Its
user guest must be let in, and nobody else be there.
"""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import sys
import urllib.error
import urllib.request

from pamqp.commands import Channel, Connection, Queue

from tests.conformance.amqp_steps import CAPABILITIES, Step
from tests.conformance.record_rabbitmq import Peer
from tests.conformance.vhost_answers import SCENES
from tests.support import amqp


class VhostPeer(Peer):
    """One connection to a virtual host, with channel 1 open where it is let in."""

    def __init__(self, address, vhost):
        self.sock = socket.create_connection(address)
        self.data = b""
        self.is_over = False
        self.sock.sendall(amqp.PROTOCOL_HEADER)
        said = Connection.StartOk({"capabilities": CAPABILITIES}, "PLAIN", "\0guest\0guest", "en_US")
        for method in (said, Connection.TuneOk(2_047, 131_072, 0), Connection.Open(vhost)):
            self.read()
            self.sock.sendall(amqp.method(0, method))
        self.opened = self.read()
        self.sock.sendall(amqp.method(1, Channel.Open()))
        self.read()


def ask(api, method, path, body=None):
    """Have something changed by the management API; harmless where it is not there."""
    login = base64.b64encode(b"guest:guest").decode()
    headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{api}/api/{path}", json.dumps(body or {}).encode(), headers, method=method)
    with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(request):
        pass


def play(address, api, scene):
    """Return the answers of a scene."""
    ask(api, "DELETE", "vhosts/v")
    peers = []
    lines = []
    for kind, *told in scene:
        if kind == "open":
            peers.append(VhostPeer(address, *told))
            lines += peers[-1].opened
        elif kind == "declare":
            lines += peers[0].say(Step(Queue.Declare(queue=told[0])))
        elif kind == "make":
            ask(api, "PUT", f"vhosts/{told[0]}")
        elif kind == "limit":
            vhost, name, value = told
            ask(api, "PUT", f"vhost-limits/{vhost}/{name}", {"value": value})
        elif kind == "delete":
            ask(api, "DELETE", f"vhosts/{told[0]}")
            lines += peers[0].read()
    for peer in peers:
        peer.sock.close()
    return lines


def main():
    host, _, port = sys.argv[1].partition(":")
    answers = {name: play((host, int(port)), sys.argv[2], scene) for name, scene in SCENES.items()}
    json.dump(answers, sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
