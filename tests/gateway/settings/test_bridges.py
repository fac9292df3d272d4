from __future__ import annotations

import tomllib

import pytest

from gateway.settings.models import SettingsError
from gateway.settings.reading import check_settings
from gateway.settings.text import settings_text

TOPIC = {"filter": "a/#"}


def bridge(**changes):
    return {"bridges": {"cloud": {"address": "h:1883", "topics": [TOPIC], **changes}}}


def test_bridge_needs_an_address_and_topics_and_no_more():
    found = check_settings(bridge(), "test").bridges["cloud"]
    assert (found.version, found.topics[0].direction, found.topics[0].qos, found.carries_in) == ("5", "out", 1, False)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"address": "h"}, "must be HOST:PORT"),
        ({"address": "h:0"}, "must be HOST:PORT, the port that the other broker listens on"),
        ({"topics": []}, "topics in test: must not be empty"),
        ({"address": "h:99999"}, "the port is at most 65535, and not 99999"),
        ({"topics": [{"filter": "a/#/b"}]}, "# stands alone, as the last level"),
        ({"topics": [{"filter": "a/b+"}]}, "[+] stands for a whole level"),
        ({"topics": [{"filter": ""}]}, "must be a plain topic filter"),
        ({"topics": [{"filter": "$share/g/a"}]}, "must be a plain topic filter"),
        ({"topics": [TOPIC | {"local_prefix": "+/"}]}, "without # and [+]"),
        ({"topics": [TOPIC | {"direction": "in", "qos": 2}]}, "qos of at most 1"),
        ({"topics": [TOPIC | {"qos": 2}, TOPIC | {"direction": "in"}]}, "make another one for qos 2"),
        ({"password_env": "P", "password_file": "/p"}, "two ways to say one thing"),
        ({"retry_min_ms": 100, "retry_max_ms": 10}, r"retry_min_ms \(100\) is more than retry_max_ms \(10\)"),
        ({"topics": [{"filter": "$delayed/5/a"}]}, "must be a plain topic filter"),
        ({"topics": [TOPIC | {"local_prefix": "$delayed/5/"}]}, "local_prefix: nothing goes out"),
        ({"topics": [TOPIC | {"remote_prefix": "$delayed/5/", "direction": "in"}]}, "remote_prefix: nothing comes in"),
        ({"topics": [TOPIC | {"remote_prefix": "$delayed/5s/"}]}, "SECONDS"),
        ({"colour": "red"}, "unknown setting bridges.cloud.colour"),
    ],
)
def test_what_cannot_be_is_refused(changes, said):
    with pytest.raises(SettingsError, match=said):
        check_settings(bridge(**changes), "test")


def test_name_is_one_that_metrics_and_files_take():
    with pytest.raises(SettingsError):
        check_settings({"bridges": {"a b": {"address": "h:1", "topics": [TOPIC]}}}, "test")


def test_settings_are_printed_as_a_file_that_loads_back(tmp_path):

    settings = check_settings(bridge(tls={"ca": "/ca.pem"}, topics=[TOPIC | {"qos": 0}, {"filter": "b"}]), "test")
    text = settings_text(settings)
    assert check_settings(tomllib.loads(text), "test").bridges == settings.bridges
