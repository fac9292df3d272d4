"""The window keeps codes by offset, in little memory, and finds what is shown."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, strategies as st

from core.pop.window import Window

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 200), st.sampled_from([2, 3])),
        st.tuples(st.just("skip"), st.sampled_from([1, 50, 5_000, 2_000_000])),
        st.tuples(st.just("put"), st.lists(st.integers(0, 400), max_size=40), st.sampled_from([0, 0, 2, 3, 5])),
        st.tuples(st.just("find"), st.integers(1, 64), st.integers(0, 64)),
        st.tuples(st.just("cut"), st.integers(0, 50)),
        st.tuples(st.just("reset")),
    ),
    max_size=30,
)


def find(window, count_max):
    into = array("q", bytes(8 * 4096))
    found = window.find_shown(into, count_max)
    return into, list(into[:found])


class Model:
    """The same in a dict."""

    def __init__(self):
        self.window, self.codes, self.next_offset = Window(10), {}, 10

    def append(self, count, code):
        for offset in range(self.next_offset, self.next_offset + count):
            self.window.append(offset, code)
            self.codes[offset] = code
        self.next_offset += count

    def skip(self, gap):
        self.next_offset += gap
        self.window.skip_to(self.next_offset)

    def put(self, picks, code):
        live = sorted(self.codes)
        for offset in {live[pick % len(live)] for pick in picks} if live else ():
            self.window.put(offset, code)
            self.codes[offset] = code
            if not code:
                del self.codes[offset]
        self.window.advance()

    def find(self, count_max, used):
        into, found = find(self.window, count_max)
        assert found == sorted(offset for offset, code in self.codes.items() if not code & 1)[:count_max]
        used = min(used, len(found))
        for offset in found[:used]:
            self.window.put(offset, 3)
            self.codes[offset] = 3
        self.window.use_found(into, used)

    def cut(self, back):
        self.next_offset = max(self.next_offset - back, 0)
        for offset in list(self.window.offsets()):
            if offset >= self.next_offset:
                self.window.put(offset, 0)
                self.codes.pop(offset, None)
        self.window.cut(self.next_offset)

    def reset(self):
        self.codes = {}
        self.window.reset(self.window.base, self.next_offset)

    def check(self):
        window, codes = self.window, self.codes
        assert window.next_offset == self.next_offset
        assert {offset: window.code(offset) for offset in codes} == codes
        assert window.hidden_count == sum(code & 1 for code in codes.values())
        assert window.shown_count == len(codes) - window.hidden_count
        if codes:
            assert window.floor() <= min(codes)


@given(steps)
def test_window_says_what_a_dict_does(actions):
    model = Model()
    for action, *arguments in actions:
        getattr(model, action)(*arguments)
        model.check()
    model.window.advance()
    assert model.window.floor() == min(model.codes, default=model.next_offset)
    assert model.window.is_empty() == (not model.codes)
    assert [offset for offset in model.window.offsets() if model.window.code(offset)] == sorted(model.codes)


def test_codes_outside_the_window_are_zero():
    window = Window(10)
    window.append(10, 3)
    assert [window.code(offset) for offset in (-1, 9, 10, 11, 1 << 60)] == [0, 0, 3, 0, 0]


def test_large_ring_is_let_go_of_when_all_is_done():
    window = Window(0)
    for offset in range(100_000):
        window.append(offset, 3)
    assert window.hidden_count == 100_000
    for offset in range(100_000):
        window.put(offset, 0)
    window.advance()
    assert window.is_empty()
    window.append(100_000, 3)
    assert window.code(100_000) == 3


@pytest.mark.slow
def test_few_old_messages_are_found_first_however_far_the_rest_has_gone():
    window = Window(0)
    for offset in range(300_000):
        window.append(offset, 3)
        if offset % 100_000:
            window.put(offset, 0)
        window.advance()
    assert window.hidden_count == 3
    for offset in (200_000, 0, 100_000):
        window.put(offset, 2)
    assert find(window, 10)[1] == [0, 100_000, 200_000]
