from __future__ import annotations

from gateway.net.streams.layer import Layer, Peer, StreamError


def test_a_layer_knows_nothing_of_the_peer_and_says_nothing_unless_it_does():
    layer = Layer()
    layer.close()
    assert layer.data_to_send() == b""
    known = Peer(("192.0.2.1", 7), name="sensor")
    assert layer.peer(known) is known


def test_an_error_tells_the_layer_and_the_reason():
    error = StreamError("tls", "no shared cipher")
    assert (str(error), error.kind, error.reason) == ("tls: no shared cipher", "tls", "no shared cipher")
