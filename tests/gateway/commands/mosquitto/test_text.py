from __future__ import annotations

import tomllib

from gateway.commands.mosquitto.text import settings_file


def test_file_says_what_the_tables_say_and_begins_with_the_remarks():
    tables = {
        "mqtt": {"listen": ["127.0.0.1:1883", {"address": "h:1", "tls": {"key": 'a"b'}}], "inflight_max": 5},
        "auth": {"mqtt_anonymous": False, "users": {"a.b": {"password_hash": "$7$x"}}, "rules": [{"permit": "deny"}]},
        "bridges": {"n": {"topics": [{"filter": "a"}, {"filter": "b", "qos": 1}]}},
    }
    text = settings_file(tables, ["one", "two"])
    assert text.startswith("# one\n# two\n\n[mqtt]\n")
    assert tomllib.loads(text) == tables
    assert '[auth.users."a.b"]' in text
    assert text.count("[[bridges.n.topics]]") == 2
