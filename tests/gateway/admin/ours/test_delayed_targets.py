from __future__ import annotations

from base64 import b64encode

import pytest

from core.properties import WAITING_AT, WAITING_FOR
from core.schedule.near_slot import REAL_TOPIC
from gateway.admin.login import Caller
from gateway.admin.ours.delayed_targets import find_target
from gateway.auth.permissions import Permissions


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({WAITING_FOR: b"plant/1"}, "plant/1"),
        ({REAL_TOPIC: b"Orders"}, "Orders"),
        ({WAITING_AT: b64encode(b'["late", "a", "b"]')}, "late a b"),
        ({WAITING_AT: b64encode(b'[["other"], "late", "a"]')}, "other late a"),
        ({WAITING_AT: b64encode(b'[["/", "in"], "late", "a"]')}, "late a"),
        ({WAITING_AT: b64encode(b'[["other", "in", "later"], "late", "a"]')}, "other late,later a"),
        ({WAITING_AT: b"!"}, ""),
        ({}, ""),
    ],
)
def test_a_target_is_told_as_its_door_calls_it(said, text):
    assert find_target(said).text == text


def test_where_it_is_not_known_only_an_administrator_reads():
    nowhere = find_target({})
    assert nowhere.may_read(None, Caller("", "root", Permissions(), ("administrator",)))
    assert not nowhere.may_read(None, Caller("", "eve", Permissions(), ("monitoring",)))
