from __future__ import annotations

from gateway.auth.permissions import ALL, Permissions


def test_everything_is_allowed_by_default():
    assert ALL.may_publish(b"a/b")
    assert ALL.may_subscribe(b"#")
    assert ALL.may_configure(b"/", b"q")
    assert ALL.may_enter(b"/")
    assert ALL.may_write(b"/", b"amq.topic")
    assert ALL.may_bind(b"/", b"q")
    assert ALL.may_read(b"/", b"q")


def test_each_right_can_be_taken_alone():
    assert not Permissions(publish=False).may_publish(b"a")
    assert not Permissions(subscribe=False).may_subscribe(b"a")
    assert not Permissions(configure=False).may_configure(b"/", b"q")
    assert Permissions(publish=False).may_subscribe(b"a")


def test_permissions_become_others_for_who_holds_them():
    held = Permissions()
    held.become(Permissions(publish=False, subscribe=True, configure=False))
    assert not held.may_publish(b"a")
    assert held.may_subscribe(b"a")
    assert not held.may_configure(b"/", b"q")


def test_less_to_read_is_told_from_more():
    reader, mute = Permissions(), Permissions(subscribe=False)
    assert mute.reads_less_than(reader)
    assert not reader.reads_less_than(mute)
    assert not mute.reads_less_than(mute)


def test_writing_goes_with_publishing_reading_with_subscribing_and_binding_with_configuring():
    assert not Permissions(publish=False).may_write(b"/", b"e")
    assert not Permissions(subscribe=False).may_read(b"/", b"q")
    assert not Permissions(configure=False).may_bind(b"/", b"q")
    assert Permissions(publish=False, subscribe=False).may_bind(b"/", b"q")
