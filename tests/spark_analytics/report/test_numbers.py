from __future__ import annotations

import datetime as dt

import pytest

from spark_analytics.report.numbers import (
    format_bytes,
    format_count,
    format_duration,
    format_moment,
    format_share,
    three_figures,
    visible_name,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.98 KiB"),
        (1536, "1.50 KiB"),
        (123 << 20, "123 MiB"),
        (1 << 60, "1 024 PiB"),
    ],
)
def test_sizes_have_three_figures(value, text):
    assert format_bytes(value).replace("\u202f", " ") == text


def test_a_size_below_zero_keeps_its_sign():
    assert format_bytes(-2048) == "-2.00\u202fKiB"


def test_counts_are_grouped():
    assert format_count(1234567).replace("\u202f", " ") == "1 234 567"


@pytest.mark.parametrize(("value", "text"), [(1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (9.999, "10.0")])
def test_figures(value, text):
    assert three_figures(value) == text


def test_shares_and_moments():
    assert format_share(0.1234) == "12.3\u202f%"
    assert format_moment(None) == ""
    assert format_moment(dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)) == "2026-01-02 03:04:05"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0 s"), (1500, "1.5 s"), (61_000, "1 min 1 s"), (3_720_000, "1 h 2 min"), (180_000_000, "2 d 2 h")],
)
def test_durations_have_two_units(milliseconds, text):
    assert format_duration(milliseconds).replace("\u202f", " ") == text


def test_names_show_what_cannot_be_seen():
    assert visible_name("a\u202eb\x00c\n\u200d") == "a\\u202eb\\u0000c\\u000a\\u200d"
    assert visible_name(None) == "(none)"
    assert visible_name("x" * 300) == "x" * 200 + "\u2026"
    assert visible_name("ключ-温度") == "ключ-温度"
