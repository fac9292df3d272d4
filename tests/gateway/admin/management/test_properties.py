from __future__ import annotations

import datetime as dt
import decimal

from pamqp.commands import Basic

from gateway.admin.management.properties import NAMES, read_properties, tell_properties


def test_properties_come_back_as_they_were_told():
    told = {name: f"{name} text" for name in NAMES if name not in {"headers", "delivery_mode", "priority", "timestamp"}}
    told |= {"headers": {"a": [1, {"b": None}], "c": True}, "delivery_mode": 2, "priority": 0, "timestamp": 7}
    assert tell_properties(read_properties(told)) == told
    assert tell_properties(read_properties({"app_id": None})) == {}


def test_values_that_json_has_not_are_told_as_it_can():
    headers = {"at": dt.datetime.fromtimestamp(7, dt.UTC), "octets": b"\xff", "part": decimal.Decimal("1.5")}
    headers |= {"none": [float("nan"), float("-inf")]}
    told = {"at": 7, "octets": "\\xff", "part": 1.5, "none": ["nan", "-inf"]}
    assert tell_properties(Basic.Properties(headers=headers)) == {"headers": told}
