from __future__ import annotations

import pytest

from gateway.commands.mosquitto.conf import Conversion
from gateway.commands.mosquitto.lines import MosquittoFileError


@pytest.fixture
def convert(tmp_path):
    """Return the conversion of these lines."""

    def made(*lines, **files):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        path = tmp_path / "m.conf"
        path.write_text("\n".join(lines))
        return Conversion(path)

    return made


def test_an_empty_file_is_a_gateway_for_this_machine(convert):
    assert convert().settings() == {"mqtt": {"listen": ["127.0.0.1:1883"]}, "auth": {"mqtt_anonymous": True}}


def test_a_listener_closes_the_door_to_clients_without_a_name(convert):
    assert convert("listener 1883").settings()["auth"] == {"mqtt_anonymous": False}
    assert convert("listener 1883", "allow_anonymous true").settings()["auth"] == {"mqtt_anonymous": True, "open": True}
    local = convert("listener 1883 127.0.0.1", "allow_anonymous true")
    assert local.settings()["auth"] == {"mqtt_anonymous": True}


def test_numbers_are_those_of_the_gateway(convert):
    said = [
        "max_inflight_messages 0",
        "max_queued_messages 5000",
        "max_packet_size 0",
        "persistent_client_expiration 2w",
        "sys_interval 5",
    ]
    made = convert("port 1884", "bind_address 10.0.0.1", *said).settings()["mqtt"]
    assert made == {
        "listen": ["10.0.0.1:1884"],
        "inflight_max": 32_767,
        "queued_count_max": 5_000,
        "packet_bytes_max": 268_435_460,
        "session_expiry_s": 14 * 86_400,
        "sys_interval_s": 5,
    }


def test_users_and_rules_are_read_from_the_folder_of_the_file(convert):
    made = convert(
        "listener 1883", "password_file pw", "acl_file acl", pw="ann:$7$1$c2FsdA==$aGFzaA==\nbob:x\n", acl="topic x\n"
    )
    assert made.settings()["auth"] == {
        "mqtt_anonymous": False,
        "default": "deny",
        "rules": [{"permit": "allow", "users": [""], "topics": ["x"]}],
        "users": {"ann": {"password_hash": "$7$1$c2FsdA==$aGFzaA=="}},
    }
    assert made.left_out == ["pw:2: user 'bob' has no hash that mosquitto_passwd made"]
    assert made.hints == ["auth.default is deny at each door: AMQP and RocketMQ clients need rules, too"]


def test_lines_belong_to_the_listener_or_bridge_before_them_and_no_line_is_passed_over_in_silence(convert):
    made = convert(
        "persistence true",
        "log_dest syslog",
        "listener 1883",
        "listener 9001",
        "protocol websockets",
        "mount_point x/",
        "connection up",
        "address h",
        "topic # out 1",
        "username u",
        "cleansession true",
    )
    settings = made.settings()
    assert settings["mqtt"]["listen"] == ["0.0.0.0:1883", {"address": "0.0.0.0:9001", "websocket": "/mqtt"}]
    assert settings["bridges"]["up"]["username"] == "u"
    assert made.left_out == ["m.conf:2: log_dest syslog", "m.conf:6: mount_point x/", "m.conf:11: cleansession true"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("per_listener_settings true", "per_listener_settings"),
        ("persistent_client_expiration soon", r"m\.conf:1: persistent_client_expiration soon"),
        ("max_queued_messages many", r"m\.conf:1: max_queued_messages many"),
        ("acl_file none", r"cannot read .*none"),
    ],
)
def test_what_cannot_be_taken_over_is_told(convert, line, why):
    with pytest.raises(MosquittoFileError, match=why):
        convert(line).settings()
