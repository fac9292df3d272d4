from __future__ import annotations

from gateway.auth.permissions import ALL, Permissions


def test_everything_is_allowed_by_default():
    assert ALL.may_publish(b"a/b")
    assert ALL.may_subscribe(b"#")
    assert ALL.may_configure(b"/", b"q")


def test_each_right_can_be_taken_alone():
    assert not Permissions(publish=False).may_publish(b"a")
    assert not Permissions(subscribe=False).may_subscribe(b"a")
    assert not Permissions(configure=False).may_configure(b"/", b"q")
    assert Permissions(publish=False).may_subscribe(b"a")
