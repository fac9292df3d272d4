from __future__ import annotations

from hypothesis import given, strategies as st

from gateway.commands.bench.mqtt import encode_length, next_packet, packet, text


@given(st.lists(st.binary(max_size=300), min_size=1), st.integers(0, 400))
def test_packets_are_cut_where_they_end_and_what_is_not_whole_waits(bodies, cut):
    data = b"".join(packet(0x30, body) for body in bodies)
    for whole in (data, data[: max(len(data) - cut, 0)]):
        at, found = 0, []
        while at < len(whole):
            start, end = next_packet(whole, at)
            if not end:
                break
            found.append(whole[start:end])
            at = end
        assert found == bodies[: len(found)]
        assert whole is not data or len(found) == len(bodies)


def test_lengths_are_those_of_the_standard():
    assert [encode_length(size) for size in (0, 127, 128, 16_383, 2_097_152)] == [
        b"\0", b"\x7f", b"\x80\x01", b"\xff\x7f", b"\x80\x80\x80\x01",
    ]  # fmt: skip
    assert text("ab") == b"\0\x02ab"
