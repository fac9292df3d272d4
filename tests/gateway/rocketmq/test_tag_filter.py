from __future__ import annotations

import pytest

from gateway.rocketmq.tag_filter import parse_tag_filter


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        ("*", None),
        ("", None),
        ("  ", None),
        ("a", {b"a"}),
        (" a || b ||", {b"a", b"b"}),
        ("a||*", {b"a", b"*"}),
        ("Größe", {"Größe".encode()}),
        ("\ud800", {b"?"}),
    ],
)
def test_expressions_name_the_wanted_tags(expression, tags):
    assert parse_tag_filter(expression) == tags
