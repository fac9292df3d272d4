from __future__ import annotations

import pytest

from gateway.net.streams.layer import Layer, Peer, StreamError
from gateway.net.streams.stack import Stack


class Quoting(Layer):
    """Carries each byte in two marks, after a greeting of three marks that it answers with its own."""

    def __init__(self, mark, *, name=""):
        self.mark = mark
        self.name = name
        self.said = b""
        self.kept = b""

    def receive_data(self, data):
        self.kept += data
        if not self.is_open:
            if len(self.kept) < 3:
                return b""
            if self.kept[:3] != self.mark * 3:
                self.said = b"no"
                raise StreamError("quotes", "other marks")
            self.is_open = True
            self.said += self.mark * 3
            self.kept = self.kept[3:]
        whole = len(self.kept) // 3 * 3
        taken, self.kept = self.kept[:whole], self.kept[whole:]
        return taken[1::3]

    def send(self, data):
        return b"".join(self.mark + bytes([byte]) + self.mark for byte in bytes(data))

    def close(self):
        self.said += self.mark

    def data_to_send(self):
        said, self.said = self.said, b""
        return said

    def peer(self, known):
        return known._replace(name=known.name + self.name)


class Header(Layer):
    """One byte in front, and nothing changes after it."""

    def receive_data(self, data):
        assert not self.is_done
        self.is_open = self.is_done = True
        return data[1:]

    def send(self, data):
        return data

    def peer(self, known):
        return known._replace(address=("192.0.2.9", 9))


def quoted(data, *marks):
    for mark in marks:
        data = Quoting(mark).send(data)
    return data


def test_bytes_pass_through_all_layers_in_both_directions_after_their_greetings():
    stack = Stack([Quoting(b"'"), Quoting(b'"')])
    sent = b"'''" + quoted(b'"""' + quoted(b"hello", b'"'), b"'")
    assert stack.receive_data(sent) == b"hello"
    assert stack.is_open
    assert stack.data_to_send() == b"'''" + quoted(b'"""', b"'")
    assert stack.data_to_send() == b""
    assert stack.send(b"you") == quoted(b"you", b'"', b"'")


def test_bytes_that_come_one_by_one_give_the_same():
    stack = Stack([Header(), Quoting(b"'")])
    got, opened = bytearray(), []
    for byte in b"h'''" + quoted(b"hello", b"'"):
        got += stack.receive_data(bytes([byte]))
        opened.append(stack.is_open)
    assert got == b"hello"
    assert opened.index(True) == 3
    assert stack.peer.address == ("192.0.2.9", 9)


def test_a_stack_whose_layers_change_nothing_is_done_and_knows_what_they_said_of_the_peer():
    stack = Stack([Header()])
    assert not stack.is_done
    assert stack.receive_data(b"hMQTT") == b"MQTT"
    assert stack.is_open
    assert stack.is_done
    assert stack.peer == Peer(("192.0.2.9", 9))
    assert stack.send(b"x") == b"x"


def test_each_layer_adds_what_it_knows_of_the_peer_once():
    stack = Stack([Quoting(b"'", name="a"), Quoting(b'"', name="b")])
    stack.receive_data(b"'''" + quoted(b'"""', b"'"))
    stack.receive_data(quoted(quoted(b"x", b'"'), b"'"))
    assert stack.peer.name == "ab"


def test_what_a_layer_says_of_an_error_goes_out_through_those_below():
    stack = Stack([Quoting(b"'"), Quoting(b'"')])
    stack.receive_data(b"'''")
    stack.data_to_send()
    with pytest.raises(StreamError, match="quotes: other marks"):
        stack.receive_data(quoted(b"???", b"'"))
    assert stack.data_to_send() == quoted(b"no", b"'")


def test_the_highest_layer_says_the_end_first():
    stack = Stack([Quoting(b"'"), Quoting(b'"')])
    stack.receive_data(b"'''" + quoted(b'"""', b"'"))
    stack.data_to_send()
    stack.close()
    assert stack.data_to_send() == quoted(b'"', b"'") + b"'"


def test_nothing_is_heard_after_the_end():
    layer = Quoting(b"'")
    stack = Stack([layer])
    stack.receive_data(b"'''")
    layer.is_ended = True
    assert stack.receive_data(quoted(b"x", b"'")) == b"x"
    assert stack.is_ended
    assert stack.receive_data(quoted(b"y", b"'")) == b""


def test_layers_that_left_something_go_on_without_bytes():
    class Slow(Quoting):
        def receive_data(self, data):
            self.left = getattr(self, "left", b"") + data
            given, self.left = self.left[:3], self.left[3:]
            self.has_more = bool(self.left)
            return super().receive_data(given)

    asked = []
    stack = Stack([Slow(b"'"), Quoting(b'"')], lambda: asked.append(1) or True)
    got = stack.receive_data(b"'''" + quoted(b'"""' + quoted(b"hello", b'"'), b"'"))
    rounds = 0
    while stack.has_more:
        got += stack.receive_data(b"")
        rounds += 1
    assert got == b"hello"
    assert rounds > 5
    assert stack._layers[0].is_over()
