from __future__ import annotations

import tracemalloc

import pytest

from core.lmq import called
from core.lmq.called import Called, LongNames
from core.lmq.queue_name import (
    AMQP,
    MQTT,
    amqp_crossing_name,
    amqp_level_name,
    amqp_passing_name,
    amqp_queue_name,
    amqp_refused_name,
    mqtt_queue_name,
)

LONG = "übersicht/halle 7/".encode() * 20


@pytest.mark.parametrize(
    ("light_name", "expected"),
    [
        (mqtt_queue_name(b"plant/+/#"), (MQTT, b"", b"plant/+/#")),
        (amqp_queue_name(b"a/b", "größe 1".encode()), (AMQP, b"a/b", "größe 1".encode())),
        (amqp_refused_name(amqp_queue_name(b"/", b"jobs")), (AMQP, b"/", b"jobs")),
        (amqp_level_name(amqp_queue_name(b"/", b"jobs"), 12), (AMQP, b"/", b"jobs")),
        (amqp_crossing_name(b"/", b"by headers"), (AMQP, b"/", b"by headers")),
        (amqp_passing_name(b"a/b", 7), (AMQP, b"a/b", b"(ends with its users)")),
        (b"%RETRY%group/0", None),
        (b"%LMQ%other%x", None),
        (b"Orders/3", None),
    ],
)
def test_a_name_in_the_log_says_what_people_call_the_queue(light_name, expected):
    assert LongNames().find(light_name) == expected


def test_long_names_are_known_once_they_were_noted_also_what_is_beside_a_queue():
    names = LongNames()
    topic_filter, queue = mqtt_queue_name(LONG + b"#"), amqp_queue_name(b"a/b", LONG)
    for light_name, kind, word in ((topic_filter, MQTT, b"filter"), (queue, AMQP, b"queue")):
        digits = light_name.partition(b"|z")[2][:8]
        assert names.find(light_name) == Called(kind, b"", b"(a %b with a long name, %b)" % (word, digits))
    names.note(topic_filter, MQTT, b"", LONG + b"#")
    names.note(queue, AMQP, b"a/b", LONG)
    assert names.find(topic_filter) == (MQTT, b"", LONG + b"#")
    for light_name in (queue, amqp_refused_name(queue), amqp_level_name(queue, 3)):
        assert names.find(light_name) == (AMQP, b"a/b", LONG)


def test_those_noted_last_are_known_of_too_many(monkeypatch):
    filters = [LONG + b"%d" % number for number in range(3)]
    monkeypatch.setattr(called, "KNOWN_BYTES", 2 * (called.NAME_BYTES + len(filters[0])))
    names = LongNames()
    for one in [*filters[:2], filters[0], filters[2]]:
        names.note(mqtt_queue_name(one), MQTT, b"", one)
    names.note(mqtt_queue_name(b"short"), MQTT, b"", b"not kept")
    found = [names.find(mqtt_queue_name(one)) for one in filters]
    assert [one.name.startswith(b"(") for one in found] == [False, True, False]


def test_the_longest_names_take_no_more_memory_than_many_shorter_ones():
    names = LongNames()
    tracemalloc.start()
    for number in range(3_000):
        topic_filter = b"%d/" % number * 3_000
        names.note(mqtt_queue_name(topic_filter), MQTT, b"", topic_filter)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 1.1 * called.KNOWN_BYTES
    assert names.find(mqtt_queue_name(topic_filter)) == (MQTT, b"", topic_filter)


class Rows(dict):
    def put(self, key, value):
        self[key] = value

    def delete(self, key):
        del self[key]


def test_long_filters_are_known_in_later_processes_until_their_messages_are_gone(monkeypatch):
    rows, filters = Rows(), [LONG + b"%d" % number for number in range(4)]
    light = [mqtt_queue_name(one) for one in filters]
    names = LongNames(rows)
    for light_name, one in zip(light[:3], filters, strict=False):
        names.note(light_name, MQTT, b"", one)
        names.note(light_name, MQTT, b"", one)
    names.note(amqp_queue_name(b"/", LONG), AMQP, b"/", LONG)  # is in the definitions anyway
    assert set(rows) == set(light[:3])
    names = LongNames(rows)
    assert names.find(light[0]) == (MQTT, b"", filters[0])
    names.note(light[1], MQTT, b"", filters[1])
    assert names.unused() == [light[0], light[2]]
    for light_name in light[1:3]:
        names.forget(light_name)
    assert set(rows) == {light[0], light[1]}
    monkeypatch.setattr(called, "ROWS_BYTES_MAX", 2 * (called.NAME_BYTES + len(filters[0])))
    names.note(light[3], MQTT, b"", filters[3])  # too many: known in this process
    assert names.find(light[3]) == (MQTT, b"", filters[3])
    assert set(rows) == {light[0], light[1]}
    monkeypatch.undo()
    LongNames(rows, lambda: False).note(light[3], MQTT, b"", filters[3])
    assert set(rows) == {light[0], light[1]}
