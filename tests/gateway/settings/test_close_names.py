from __future__ import annotations

import pytest

from gateway.settings.close_names import find_close_name

KNOWN = ["data_dir", "mqtt.listen", "mqtt.rewrite", "mqtt.connections_max", "store.flush.mode", "auth.mqtt_anonymous"]


@pytest.mark.parametrize(
    ("path", "close"),
    [
        ("mqtt.lissten", "mqtt.listen"),
        ("mqtt.port", "mqtt.listen"),
        ("mqtt.max_connections", "mqtt.connections_max"),
        ("auth.allow_anonymous", "auth.mqtt_anonymous"),
        ("datadir", "data_dir"),
        ("mqt.listen", "mqtt.listen"),
        ("store.flsh", "store.flush"),
        ("mqtt.zzz", None),
        ("zzz", None),
    ],
)
def test_what_was_meant_is_found_in_the_same_table_first(path, close):
    assert find_close_name(path, KNOWN) == close
