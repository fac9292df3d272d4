"""Each front maps every error of the core in one table."""

from __future__ import annotations

import importlib

import pytest

from core.errors import LmqError

TABLES = {
    "gateway.mqtt.errors": "REASON_CODE_BY_ERROR",
    "gateway.amqp.errors": "REPLY_CODE_BY_ERROR",
    "gateway.rocketmq.errors": "RESPONSE_CODE_BY_ERROR",
}


def _all_errors(kind=LmqError):
    for child in kind.__subclasses__():
        if child.__module__ == "core.errors":
            yield child
            yield from _all_errors(child)


@pytest.mark.parametrize("module_name", TABLES)
def test_front_answers_every_error_of_the_core(module_name):
    table = getattr(importlib.import_module(module_name), TABLES[module_name])
    missing = [error.__name__ for error in _all_errors() if error not in table]
    assert not missing
