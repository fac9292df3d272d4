from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

import pytest

from lmq.out_message import KeyMaker, OutMessage, encode_properties
from lmq.remoting.message_codec import decode_properties


def properties_of(**changes) -> dict[str, str]:
    text = encode_properties(OutMessage("T", b"x", **changes), "KEY")
    return {name.decode(): value.decode() for name, value in decode_properties(text.encode()).items()}


def test_a_plain_message_has_a_key_of_its_own():
    assert properties_of() == {"UNIQ_KEY": "KEY", "WAIT": "true"}
    assert properties_of(properties={"UNIQ_KEY": "mine"})["UNIQ_KEY"] == "mine"


@pytest.mark.parametrize("given", ["order42", ["order42"], ("order42",)])
def test_a_str_is_one_key(given):
    assert properties_of(keys=given)["KEYS"] == "order42"


def test_many_keys_are_many():
    assert properties_of(keys=["a", "b"])["KEYS"] == "a b"
    assert "KEYS" not in properties_of(keys="")


def test_a_str_is_one_light_queue():
    assert properties_of(dispatch="%LMQ%a")["INNER_MULTI_DISPATCH"] == "%LMQ%a"
    assert properties_of(dispatch=["%LMQ%a", "%LMQ%b"])["INNER_MULTI_DISPATCH"] == "%LMQ%a,%LMQ%b"


@pytest.mark.parametrize("given", ["order 42", ["order 42"], ["a", ""]])
def test_a_key_that_would_not_be_found_is_refused(given):
    with pytest.raises(ValueError, match="keys"):
        properties_of(keys=given)


@pytest.mark.parametrize(
    ("said", "name", "value"),
    [
        ({"delay": 0.0014}, "TIMER_DELAY_MS", "2"),
        ({"delay": timedelta(seconds=2)}, "TIMER_DELAY_MS", "2000"),
        ({"deliver_at": datetime(2030, 1, 1, tzinfo=UTC)}, "TIMER_DELIVER_MS", "1893456000000"),
        ({"delay_level": 3}, "DELAY", "3"),
        ({"sharding_key": "order-1"}, "__SHARDINGKEY", "order-1"),
    ],
)
def test_when_a_message_comes_and_beside_what_is_said_by_a_property(said, name, value):
    assert properties_of(**said)[name] == value


def test_a_moment_is_said_in_one_way():
    with pytest.raises(ValueError, match="exclude"):
        properties_of(delay=1, delay_level=1)


def test_a_body_of_text_is_refused_with_what_to_do():
    with pytest.raises(TypeError, match=r"body\.encode\(\)"):
        encode_properties(OutMessage("T", "text"), "KEY")


def test_keys_are_32_digits_and_distinct():
    maker = KeyMaker()
    keys = {maker.make() for _ in range(1000)}
    assert len(keys) == 1000
    assert {len(key) for key in keys} == {32}
    assert all(int(key, 16) for key in keys)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"properties": {"a": 1}}, "properties={'a': 1}: names and values are to be str"),
        ({"properties": 5}, "properties=5 is of type int; it is to be of type Mapping"),
        ({"tags": 5}, "tags=5 is of type int; it is to be of type str"),
        ({"keys": 5}, "keys=5 is of type int; it is to be a str, or several"),
        ({"keys": [5]}, "one of keys=5 is of type int; it is to be of type str"),
        ({"body": None}, "body=None is of type NoneType; it is to be of type bytes or bytearray or memoryview"),
        ({"topic": None}, "topic=None is of type NoneType; it is to be of type str"),
        ({"flag": "1"}, "flag='1' is of type str; it is to be of type int"),
        ({"queue_id": "0"}, "queue_id='0' is of type str; it is to be of type int"),
        ({"delay": "5"}, "delay='5' is of type str; it is to be of type timedelta or int or float"),
        ({"delay_level": 1.5}, "delay_level=1.5 is of type float; it is to be of type int"),
        ({"deliver_at": 1_790_000_000}, "deliver_at=1790000000 is of type int; it is to be of type datetime"),
    ],
)
def test_an_argument_of_another_type_is_named(changes, said):
    with pytest.raises(TypeError, match=rf"^{re.escape(said)}$"):
        encode_properties(OutMessage(**{"topic": "T", "body": b"x"} | changes), "KEY")


@pytest.mark.parametrize("body", [b"x", bytearray(b"x"), memoryview(b"x")])
def test_a_body_is_any_bytes(body):
    assert encode_properties(OutMessage("T", body), "KEY")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"flag": 1 << 31}, "flag=2147483648; it is to be -2147483648 to 2147483647"),
        ({"queue_id": -1}, "queue_id=-1; it is to be 0 or more"),
        ({"delay_level": -1}, "delay_level=-1; it is to be 0 or more"),
        ({"delay": math.nan}, "delay=nan is not a time"),
        ({"delay": math.inf}, "delay=inf is not a time"),
    ],
)
def test_a_number_that_cannot_be_is_named(changes, said):
    with pytest.raises(ValueError, match=rf"^{re.escape(said)}$"):
        encode_properties(OutMessage("T", b"x", **changes), "KEY")
