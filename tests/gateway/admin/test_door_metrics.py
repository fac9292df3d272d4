from __future__ import annotations

from core.metrics import DoorMetrics
from gateway.admin.door_metrics import door_families, listener_family, reason_families


def test_every_counter_of_a_door_is_exported():
    door = DoorMetrics("mqtt")
    names = {family.name for family in [*door_families([door]), *reason_families([door])]}
    # MQTT alone has acknowledgements, so they are a family of their own: lmq_mqtt_acknowledged.
    # The changes of channels are no count of anything: they say to lists that they are to look once more.
    counted = {name for name in DoorMetrics.__slots__ if name not in {"name", "acknowledged", "channel_changes"}}
    exported = {name.removeprefix("lmq_").replace("connections_opened", "connections_total") for name in names}
    assert exported == counted


def test_logins_and_dead_letters_are_told_by_what_became_of_them():
    door = DoorMetrics("amqp")
    door.log_in("wrong")
    door.log_in("wrong")
    door.bury("rejected", 3)
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in reason_families([door])
        for sample in family.samples
    }
    assert samples["lmq_logins_total", "amqp", "wrong"] == 2
    assert samples["lmq_dead_letters_total", "amqp", "rejected"] == 3


def test_dead_letters_are_told_as_none_before_the_first_so_that_it_is_an_increase():
    told = {
        (sample.name, *sample.labels.values()): sample.value
        for family in reason_families([DoorMetrics("amqp"), DoorMetrics("rocketmq"), DoorMetrics("mqtt")])
        for sample in family.samples
    }
    reasons = {"amqp": ("delivery_limit", "expired", "maxlen", "rejected"), "rocketmq": ("attempts", "rejected")}
    assert told == {("lmq_dead_letters_total", door, each): 0 for door, found in reasons.items() for each in found}


def test_each_listener_has_its_own_connections():
    family = listener_family([("mqtt", "ws", "127.0.0.1:8083", 4)])
    assert [(*sample.labels.values(), sample.value) for sample in family.samples] == [
        ("mqtt", "ws", "127.0.0.1:8083", 4)
    ]
