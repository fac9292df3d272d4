from __future__ import annotations

from gateway.bridges.echoes import COUNT_MAX, KEPT_S, Echoes


def test_each_message_is_taken_as_often_as_it_was_published():
    echoes = Echoes()
    for _ in range(2):
        echoes.expect("a", b"x", 0, is_kept=True)
    assert [echoes.take("a", b"x", 1) for _ in range(3)] == [True, True, False]
    assert len(echoes) == 0


def test_others_are_not_taken():
    echoes = Echoes()
    echoes.expect("a", b"x", 0, is_kept=True)
    assert not echoes.take("a", b"y", 0)
    assert not echoes.take("b", b"x", 0)
    assert echoes.take("a", b"x", 0)


def test_one_that_did_not_go_out_is_not_waited_for():
    echoes = Echoes()
    echo = echoes.expect("a", b"x", 0, is_kept=True)
    echoes.cancel(echo)
    echoes.cancel(echo)
    assert not echoes.take("a", b"x", 0)


def test_one_that_does_not_come_is_forgotten():
    echoes = Echoes()
    echoes.expect("a", b"x", 0, is_kept=False)
    assert not echoes.take("a", b"x", KEPT_S)


def test_after_a_new_connection_only_what_is_sure_still_comes():
    echoes = Echoes()
    sure, lost = (echoes.expect("a", body, 0, is_kept=True) for body in (b"x", b"y"))
    sure.is_sure = True
    echoes.reconnect(KEPT_S, is_resumed=True)
    echoes.cancel(lost)
    assert echoes.take("a", b"x", KEPT_S + 1)
    assert not echoes.take("a", b"y", KEPT_S + 1)
    echoes.expect("a", b"x", 0, is_kept=True).is_sure = True
    echoes.reconnect(0, is_resumed=False)
    assert not echoes.take("a", b"x", 0)


def test_no_more_are_waited_for_than_fit():
    echoes = Echoes()
    for k in range(COUNT_MAX + 1):
        echoes.expect("a", b"%d" % k, 0, is_kept=True)
    assert len(echoes) == COUNT_MAX
    assert not echoes.take("a", b"0", 0)
    assert echoes.take("a", b"1", 0)
