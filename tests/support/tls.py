"""A client of TLS without a socket."""

from __future__ import annotations

import ssl


class Client:
    """The other end."""

    def __init__(self, context, host="127.0.0.1"):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.object = context.wrap_bio(self.incoming, self.outgoing, server_hostname=host)

    def step(self):
        """Go on with the handshake; return whether it is through."""
        try:
            self.object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def read(self):
        try:
            return self.object.read(1 << 20)
        except ssl.SSLWantReadError:
            return b""


def shake_hands(layer, client, size=1 << 20):
    """Exchange what both have to say, at most `size` bytes at a time, until both are open."""
    got = bytearray()
    for _ in range(20):
        client.step()
        sent = client.outgoing.read()
        for at in range(0, len(sent), size):
            got += layer.receive_data(sent[at : at + size])
        client.incoming.write(layer.data_to_send())
        if layer.is_open and client.step() and not client.outgoing.pending:
            return bytes(got)
    raise AssertionError("the handshake has no end")
