from __future__ import annotations

import json
import random

import pytest
from fastapi import HTTPException

from gateway.admin import steps
from gateway.admin.management import listing
from gateway.admin.management.listing import Kind, Question, answer_list, encode, pick

KIND = Kind(
    name=lambda number: f"n{number:05}",
    describe=lambda number: {"name": f"n{number:05}", "rest": {"of": number % 7}, "none": None},
    figures={"tens": lambda number: number // 10},
)


async def _ask(things, **asked):
    answer = await answer_list(Question(**asked), KIND, iter(things))
    return json.loads(answer.body)


@pytest.mark.asyncio
async def test_a_list_without_a_page_is_all_of_it_by_name():
    assert [item["name"] for item in await _ask([3, None, 1, 2])] == ["n00001", "n00002", "n00003"]
    assert await _ask([]) == []


@pytest.mark.asyncio
async def test_a_long_list_without_a_page_is_sent_in_parts(monkeypatch):
    monkeypatch.setattr(listing, "AT_ONCE_BYTES", 20_000)
    answer = await answer_list(Question(), KIND, iter(range(1_000)))
    parts = [part async for part in answer.body_iterator]
    assert [item["name"] for item in json.loads(b"".join(parts))] == [f"n{number:05}" for number in range(1_000)]
    assert max(map(len, parts)) < 20_000
    assert int(answer.headers["content-length"]) == sum(map(len, parts))


@pytest.mark.asyncio
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sort", ["", "name", "tens", "rest.of", "none", "missing"])
async def test_pages_are_parts_of_one_order(monkeypatch, sort, reverse):
    monkeypatch.setattr(listing, "SHORT", 50)
    monkeypatch.setattr(steps, "CHUNK", 16)
    numbers = list(range(103))
    random.Random(1).shuffle(numbers)
    pages = [await _ask(numbers, page=page, page_size=10, sort=sort, sort_reverse=reverse) for page in range(1, 12)]
    shown = [int(item["name"][1:]) for page in pages for item in page["items"]]
    key = {"": int, "name": int, "tens": lambda n: n // 10, "rest.of": lambda n: n % 7}.get(sort, lambda n: 0)
    assert [key(number) for number in shown] == sorted(map(key, numbers), reverse=reverse)
    assert sorted(shown) == sorted(numbers)
    head = {name: value for name, value in pages[10].items() if name != "items"}
    assert head == {
        "total_count": 103,
        "filtered_count": 103,
        "page": 11,
        "page_size": 10,
        "page_count": 11,
        "item_count": 3,
    }


@pytest.mark.asyncio
async def test_a_page_that_begins_behind_the_end_is_refused_as_rabbitmq_does():
    assert (await _ask([], page=1))["items"] == []
    assert (await _ask(range(20), page=3, page_size=10))["items"] == []
    with pytest.raises(HTTPException) as refused:
        await _ask(range(20), page=4, page_size=10)
    assert (refused.value.status_code, refused.value.detail["error"]) == (400, "page_out_of_range")
    with pytest.raises(HTTPException):
        await _ask(range(20), page=2, page_size=10, name="n00003")


@pytest.mark.asyncio
async def test_a_list_is_searched_by_a_part_of_the_name():
    found = await _ask(range(100), page=1, name="N0001")
    assert (found["total_count"], found["filtered_count"]) == (100, 10)
    found = await _ask(range(100), page=1, name="^n000[12]3$", use_regex=True)
    assert [item["name"] for item in found["items"]] == ["n00013", "n00023"]
    with pytest.raises(HTTPException, match="is not a regular expression"):
        await _ask(range(100), name="(", use_regex=True)


@pytest.mark.asyncio
async def test_columns_are_picked():
    assert await _ask([8], columns="tens,name") == [{"tens": 0, "name": "n00008"}]
    assert await _ask([8], columns="rest.of,name,lost,rest.lost") == [{"name": "n00008", "rest": {"of": 1}}]
    assert pick({"a": 1, "b": {"c": 2}}, ["b", "a.c"]) == {"b": {"c": 2}}


def test_rows_are_written_as_json_also_where_their_text_is_no_unicode():
    row = {"name": "Zürich \ud800", "é": [1, 0.5, None, True], "in": {"b": '\x00"\\'}}
    assert json.loads(encode(row)) == row
    assert encode({"name": "Zürich"}) == '{"name":"Zürich"}'.encode()
