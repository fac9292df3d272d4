from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from gateway.plain_errors import tell_first, tell_wrong
from gateway.settings.rules import RuleSettings


def _refuse(text):
    raise ValueError("must be better")


class Said(BaseModel, extra="forbid"):
    name: Annotated[str, Field(min_length=1, max_length=3)] = "a"
    longer: Annotated[str, Field(min_length=2)] = "aa"
    word: Annotated[str, Field(pattern="^[a-z]+$")] = "a"
    count: Annotated[int, Field(ge=1, lt=9)] = 1
    even: Annotated[int, Field(multiple_of=2)] = 2
    share: Annotated[float, Field(gt=0, le=1)] = 1
    one: Literal["a"] = "a"
    two: Literal["a", "b"] = "a"
    more: Literal["a", "b", "c"] = "a"
    some: Annotated[tuple[Literal["a", "b"], ...], Field(min_length=1, max_length=2)] = ("a",)
    checked: Annotated[str, AfterValidator(_refuse)] = ""
    is_so: bool = True
    inner: RuleSettings | None = None


@pytest.mark.parametrize(
    ("said", "place", "text"),
    [
        ({"name": ""}, "name", "must not be empty"),
        ({"name": "abcd"}, "name", "must have at most 3 characters"),
        ({"name": 7}, "name", "must be a text"),
        ({"longer": "a"}, "longer", "must have at least 2 characters"),
        ({"word": "A"}, "word", "must match ^[a-z]+$"),
        ({"even": 3}, "even", "must be a multiple of 2"),
        ({"count": 0}, "count", "must be at least 1"),
        ({"count": 9}, "count", "must be less than 9"),
        ({"count": "x"}, "count", "must be a whole number"),
        ({"count": 1.5}, "count", "must be a whole number"),
        ({"share": 0}, "share", "must be more than 0.0"),
        ({"share": 2}, "share", "must be at most 1.0"),
        ({"share": "x"}, "share", "must be a number"),
        ({"one": "x"}, "one", "must be 'a'"),
        ({"two": "x"}, "two", "must be 'a' or 'b'"),
        ({"more": "x"}, "more", "must be one of 'a', 'b' or 'c'"),
        ({"some": "a"}, "some", "must be a list"),
        ({"some": []}, "some", "must not be empty"),
        ({"some": ["a"] * 3}, "some", "must have at most 2 values"),
        ({"some": ["x"]}, "some.0", "must be 'a' or 'b'"),
        ({"checked": ""}, "checked", "must be better"),
        ({"is_so": "maybe"}, "is_so", "must be true or false"),
        ({"inner": "x"}, "inner", "must be an object of names and values"),
        ({"inner": {}}, "inner.permit", "is missing"),
        ({"odd": 1}, "odd", "is not known here"),
    ],
)
def test_what_is_wrong_is_said_once_in_a_plain_sentence(said, place, text):
    with pytest.raises(ValidationError) as raised:
        Said.model_validate(said)
    assert [(".".join(map(str, one.place)), one.text) for one in tell_wrong(raised.value.errors())] == [(place, text)]


def test_the_first_that_is_wrong_is_told_by_itself():
    with pytest.raises(ValidationError) as raised:
        Said.model_validate({"name": "", "count": 0})
    assert tell_first(raised.value) == "name must not be empty"
    assert tell_first(ValueError("odd")) == "odd"
