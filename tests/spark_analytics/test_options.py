from __future__ import annotations

import pickle

import pytest

from spark_analytics.options import OptionError, ReadOptions, StreamRefusedError, parse_options


def test_a_path_alone_reads_all_messages_and_fails_at_a_bad_record():
    assert parse_options({"path": "/data"}) == ReadOptions("/data")


def test_names_may_come_in_any_case_as_spark_hands_them_down():
    given = {
        "PATH": "/d",
        "startingtimestamp": "5",
        "endingTimestamp": "9",
        "onbadrecord": "SKIP",
        "includebody": "True",
        "startingOffset": "64",
        "endingoffset": "128",
        "taskspersegment": "3",
    }
    assert parse_options(given) == ReadOptions(
        "/d",
        starting_ms=5,
        ending_ms=9,
        skip_bad_records=True,
        include_body=True,
        starting_offset=64,
        ending_offset=128,
        tasks_per_segment=3,
    )


def test_columns_are_split_at_commas():
    assert parse_options({"path": "d", "columns": " phys, topic ,,"}).columns == ("phys", "topic")


def test_a_file_address_is_a_path():
    assert parse_options({"path": "file:///d"}).path == "/d"


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({}, "path"),
        ({"path": ""}, "path"),
        ({"path": "d", "depth": "3"}, "depth"),
        ({"path": "d", "view": "queues"}, "view"),
        ({"path": "d", "onBadRecord": "ignore"}, "onBadRecord"),
        ({"path": "d", "includeBody": "yes"}, "includeBody"),
        ({"path": "d", "startingTimestamp": "-1"}, "startingTimestamp"),
        ({"path": "d", "endingTimestamp": "2026-01-01"}, "endingTimestamp"),
        ({"path": "d", "startingOffset": "earliest"}, "startingOffset"),
        ({"path": "d", "tasksPerSegment": "-2"}, "tasksPerSegment"),
    ],
)
def test_a_wrong_option_is_named(given, option):
    with pytest.raises(OptionError) as caught:
        parse_options(given)
    assert caught.value.option == option


def test_an_error_travels_between_processes():
    error = pickle.loads(pickle.dumps(OptionError("path", "why")))
    assert (error.option, error.reason) == ("path", "why")
    assert pickle.loads(pickle.dumps(StreamRefusedError())).option == "readStream"
