"""What a dead letter says of its deaths, in blocks that others can read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from pamqp import commands, header

from gateway.amqp.deaths import EXPIRED, REJECTED, Death, bury, is_cycle, last_death
from gateway.amqp.property_block import BlockReader


def death(reason=REJECTED, queue=b"q", key=b"k", *, keeps_copies=True):
    return Death(reason, queue, b"ex", key, 1_700_000_000, keeps_copies)


TEXTS = ("content_type", "content_encoding", "correlation_id", "message_id", "app_id")
TOLD = ("exchange", "queue", "reason")


def block(**properties):
    content = header.ContentHeader(properties=commands.Basic.Properties(**properties))
    return content.marshal()[12:]


def read(encoded):
    """Return the properties as an outside library reads them; ours finds nothing wrong with them either."""
    BlockReader().read(encoded, 0, len(encoded))
    properties = commands.Basic.Properties()
    properties.unmarshal(int.from_bytes(encoded[:2], "big"), encoded[2:])
    return {name: value for name, value in properties if value is not None and name != "cluster_id"}


def test_the_first_death_is_told_in_three_ways_and_the_rest_of_the_message_stays():
    buried = bury(
        block(content_type="text/plain", headers={"h": 1}, priority=3, expiration="500", message_id="m"), death()
    )
    said = read(buried.block)
    (one,) = said["headers"].pop("x-death")
    assert one.pop("time").timestamp() == 1_700_000_000
    assert one == {
        "count": 1,
        "reason": "rejected",
        "queue": "q",
        "exchange": "ex",
        "routing-keys": ["k"],
        "original-expiration": "500",
    }
    told = {"exchange": "ex", "queue": "q", "reason": "rejected"}
    expected = {f"x-{which}-death-{name}": value for which in ("first", "last") for name, value in told.items()}
    assert said.pop("headers") == {"h": 1, **expected}
    assert said == {"content_type": "text/plain", "priority": 3, "message_id": "m"}
    assert (buried.keys, buried.deaths) == ((b"k",), ((REJECTED, b"q"),))


def test_deaths_of_one_kind_in_one_queue_are_counted_and_the_latest_comes_first():
    buried = bury(bury(bury(block(), death()).block, death(EXPIRED, b"wait")).block, death())
    assert buried.deaths == ((REJECTED, b"q"), (EXPIRED, b"wait"))
    headers = read(buried.block)["headers"]
    assert [one["count"] for one in headers["x-death"]] == [2, 1]
    assert (headers["x-first-death-queue"], headers["x-last-death-queue"]) == ("q", "q")


def test_a_letter_says_why_its_message_died_last():
    once = bury(block(headers={"a": 1}), death(EXPIRED)).block
    twice = bury(once, death(REJECTED)).block
    assert (last_death(once), last_death(twice)) == ((b"expired", b"q"), (b"rejected", b"q"))
    assert last_death(block(headers={"a": 1})) == last_death(block()) == (b"", b"")


def test_copies_go_with_the_letter_only_where_it_keeps_its_keys():
    sent = block(headers={"CC": ["x", "y"]})
    assert bury(sent, death()).keys == (b"k", b"x", b"y")
    assert read(bury(sent, death()).block)["headers"]["CC"] == ["x", "y"]
    other = bury(sent, death(keeps_copies=False))
    assert "CC" not in read(other.block)["headers"]
    assert read(other.block)["headers"]["x-death"][0]["routing-keys"] == ["k", "x", "y"]


@pytest.mark.parametrize("forged", ["text", 5, [], ["no table"], [{}], [{"count": "many", "reason": 1, "queue": None}]])
def test_a_header_of_that_name_that_says_something_else_does_no_harm(forged):
    buried = bury(block(headers={"x-death": forged}), death())
    assert buried.deaths[0] == (REJECTED, b"q")
    assert read(buried.block)["headers"]["x-death"][0]["count"] == 1


@pytest.mark.parametrize(
    ("queue", "deaths", "expected"),
    [
        (b"q", [], False),
        (b"q", [(EXPIRED, b"q")], True),
        (b"q", [(EXPIRED, b"p"), (EXPIRED, b"q")], True),
        (b"q", [(EXPIRED, b"p"), (REJECTED, b"q")], False),
        (b"q", [(REJECTED, b"p"), (EXPIRED, b"q")], False),
        (b"q", [(EXPIRED, b"p")], False),
    ],
)
def test_a_round_without_a_rejection_is_a_cycle(queue, deaths, expected):
    assert is_cycle(queue, deaths) is expected


values = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**31), 2**31 - 1), st.text(max_size=5), st.none()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["x-death", "CC", "x-first-death-queue", "x-last-death-reason", "other"])


@settings(max_examples=50)
@given(
    st.dictionaries(names, values, max_size=4), st.lists(st.sampled_from([REJECTED, EXPIRED]), min_size=1, max_size=4)
)
def test_any_headers_give_a_sound_block_however_often_the_message_dies(headers, reasons):
    encoded = block(headers=headers)
    for number, reason in enumerate(reasons):
        encoded = bury(encoded, death(reason, b"q%d" % number)).block
    said = read(encoded)["headers"]
    if "other" in headers:
        assert said["other"] == read(block(headers=headers))["headers"]["other"]
    assert said["x-death"][0]["queue"] == f"q{len(reasons) - 1}"
    assert said["x-last-death-reason"] == reasons[-1].decode()


@settings(max_examples=50)
@given(
    st.dictionaries(st.sampled_from(["a", "CC2", "b-death", "x"]), st.text(max_size=9), max_size=3),
    st.fixed_dictionaries({}, optional={name: st.text("ab", min_size=1, max_size=9) for name in TEXTS}),
)
def test_a_first_death_is_told_in_the_same_way_whatever_else_the_message_says(headers, texts):
    before = block(headers=headers or None, **texts)
    plain, odd = (read(bury(one, death()).block) for one in (before, bury(before, death()).block))
    told = {"x-death", *(f"x-{which}-death-{what}" for which in ("first", "last") for what in TOLD)}
    assert {name: text for name, text in plain["headers"].items() if name not in told} == headers
    assert {name: text for name, text in plain.items() if name != "headers"} == texts
    assert odd["headers"].pop("x-death")[0]["count"] == 2
    assert plain["headers"].pop("x-death")[0]["count"] == 1
    assert odd == plain
