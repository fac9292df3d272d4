from __future__ import annotations

import json

import pytest

pytest.importorskip("pyarrow")

from core.store.log_survey import Stretch
from spark_analytics.report.summary import Damage, nearest_rank, write_json
from tests.support.fan_out_oracle import (
    Sent,
    count_devices,
    count_queues,
    nearest_rank as plain_nearest_rank,
    random_messages,
)
from tests.support.reports import made_summary


def test_totals_are_those_of_a_plain_count(tmp_path):
    messages = random_messages(5, 2000)
    fanouts = [len(sent.queues) for sent in messages]
    totals = made_summary(messages, tmp_path).totals
    assert (totals["messages"], totals["dispatches"]) == (2000, sum(fanouts))
    assert [totals[f"fanout_p{percent}"] for percent in (50, 95, 99)] == [
        plain_nearest_rank(fanouts, percent) for percent in (50, 95, 99)
    ]
    assert totals["fanout_max"] == max(fanouts)
    devices = count_devices(messages).values()
    assert totals["stored_once_bytes"] == sum(row["stored_once_bytes"] for row in devices)
    assert totals["stored_once_bytes"] == totals["record_bytes"] + totals["index_bytes"]
    assert totals["saved_bytes"] == totals["copied_bytes"] - totals["stored_once_bytes"]


def test_windows_cover_all_messages_in_order(tmp_path):
    messages = random_messages(5, 2000)
    windows = made_summary(messages, tmp_path).windows
    assert sum(row["messages"] for row in windows) == 2000
    starts = [row["window_start"] for row in windows]
    assert starts == sorted(set(starts))
    first = [len(sent.queues) for sent in messages if sent.stored_ms // 1000 == messages[0].stored_ms // 1000]
    assert windows[0]["fanout_p95"] == plain_nearest_rank(first, 95)


def test_top_rows_have_shares_that_add_up(tmp_path):
    messages = random_messages(5, 2000)
    rows = made_summary(messages, tmp_path).top_queues
    counts = count_queues(messages)
    assert [row["messages"] for row in rows] == sorted((count for count, _ in counts.values()), reverse=True)[:20]
    assert rows[-1]["cumulative_share"] == pytest.approx(sum(row["share"] for row in rows))


def test_a_device_whose_fan_out_jumps_is_first_among_the_changed(tmp_path):
    def sent(device, place, fanout):
        queues = tuple(f"q{number}" for number in range(fanout))
        return Sent(device, "t", queues, 1_790_000_000_000 + place * 100, 200, 10, 0)

    steady = [sent("steady", place, 3) for place in range(100)]
    jumped = [sent("jumped", place, 1 if place < 50 else 9) for place in range(100)]
    rare = [sent("rare", place, place) for place in (1, 99)]
    messages = sorted(steady + jumped + rare, key=lambda one: one.stored_ms)
    (changed,) = made_summary(messages, tmp_path).changed_devices
    assert changed == {"device": "jumped", "before": 1.0, "after": 9.0}


def test_quality_counts_what_a_reader_should_doubt(tmp_path):
    messages = random_messages(5, 2000)
    quality = made_summary(messages, tmp_path).quality
    assert quality == {
        "messages_to_no_queue": sum(1 for sent in messages if not sent.queues),
        "messages_without_device": sum(1 for sent in messages if sent.device is None),
        "messages_with_wrong_clock": 40,
        "other_log_bytes": 100,
        "skipped_stretches": 0,
        "skipped_bytes": 0,
        "skipped": [],
        "messages_with_lost_queues": 0,
        "lost_sets": [],
        "restored_sets": 0,
    }


def test_what_was_left_out_is_counted_with_its_positions(tmp_path):
    damage = [
        Damage("record", 500, 700, 0),
        Damage("dispatch set, restored", 100, 200, 0),
        Damage("dispatch set", 300, 400, 0),
        Damage("dispatch set", 300, None, 9),
    ]
    missing = [Stretch(64, 96, "segment 64 is missing")]
    quality = made_summary(random_messages(5, 20), tmp_path, missing=missing, damage=damage).quality
    assert quality["skipped_stretches"] == 2
    assert quality["skipped_bytes"] == 232
    assert quality["skipped"] == [
        {"start": 64, "end": 96, "what": "segment 64 is missing"},
        {"start": 500, "end": 700, "what": "record"},
    ]
    assert quality["messages_with_lost_queues"] == 9
    assert quality["lost_sets"] == [300]
    assert quality["restored_sets"] == 1


def test_an_empty_log_gives_zeros(tmp_path):
    summary = made_summary([], tmp_path)
    assert set(summary.totals.values()) == {0}
    assert summary.windows == summary.top_devices == summary.changed_devices == []


def test_json_holds_the_same_numbers(tmp_path):
    summary = made_summary(random_messages(5, 300), tmp_path)
    write_json(summary, tmp_path / "report.json")
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["version"] == 1
    assert told["totals"] == summary.totals
    assert told["windows"][0]["window_start"].endswith("+00:00")


@pytest.mark.parametrize(("percent", "value"), [(1, 2), (50, 2), (51, 5), (75, 5), (76, 9), (100, 9)])
def test_the_nearest_rank_is_always_a_value_that_occurs(percent, value):
    assert nearest_rank([(2, 2), (5, 1), (9, 1)], percent) == value
