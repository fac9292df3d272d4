from __future__ import annotations

import pytest

from gateway.commands.mosquitto.conf import Conversion
from gateway.commands.mosquitto.lines import MosquittoFileError


@pytest.fixture
def convert(tmp_path):
    """Return the conversion of these lines."""

    def made(*lines, **files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
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
        "socket_domain ipv4",
        "connection up",
        "address h",
        "topic # out 1",
        "username u",
        "cleansession true",
    )
    settings = made.settings()
    assert settings["mqtt"]["listen"] == ["0.0.0.0:1883", {"address": "0.0.0.0:9001", "websocket": "*"}]
    assert settings["bridges"]["up"]["username"] == "u"
    assert made.left_out == [
        "m.conf:2: log_dest syslog",
        "m.conf:6: socket_domain ipv4",
        "m.conf:11: cleansession true",
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("per_listener_settings true", "per_listener_settings"),
        ("persistent_client_expiration soon", r"m\.conf:1: persistent_client_expiration soon"),
        ("max_queued_messages many", r"m\.conf:1: max_queued_messages many"),
        ("acl_file none", r"cannot read .*none"),
        ("persistent_client_expiration", r"m\.conf:1: persistent_client_expiration "),
        ("allow_anonymous yes", r"m\.conf:1: allow_anonymous yes: must be true or false"),
        ("include_dir none", r"m\.conf:1: include_dir none: no such folder"),
        ("per_listener_settings 1", "per_listener_settings"),
        ("plugin /usr/lib/mosquitto_dynamic_security.so", r"m\.conf:1: plugin keeps clients out or apart"),
        ("mount_point plant1/", r"m\.conf:1: mount_point keeps clients out or apart"),
        ("clientid_prefixes plant1-", r"m\.conf:1: clientid_prefixes keeps"),
        ("psk_hint x", r"m\.conf:1: psk_hint keeps"),
        ("use_username_as_clientid true", r"m\.conf:1: use_username_as_clientid keeps"),
    ],
)
def test_what_cannot_be_taken_over_is_told(convert, line, why):
    with pytest.raises(MosquittoFileError, match=why):
        convert(line).settings()


def test_what_stands_before_all_listeners_is_for_the_one_without_a_line_wherever_its_port_is(convert):
    tls = ["cafile /ca", "certfile /s", "keyfile /k", "require_certificate 1  # of each client"]
    made = convert(*tls, "port 8883", "listener 1883 127.0.0.1", "protocol websockets").settings()
    assert made["mqtt"]["listen"] == [
        {"address": "0.0.0.0:8883", "tls": {"certificate": "/s", "key": "/k", "client_ca": "/ca"}},
        {"address": "127.0.0.1:1883", "websocket": "*"},
    ]
    bound = convert("bind_address 127.0.0.1").settings()
    assert bound == {"mqtt": {"listen": ["127.0.0.1:1883"]}, "auth": {"mqtt_anonymous": False}}
    usual = convert("protocol mqtt", "max_connections -1", "listener 1884 127.0.0.1").settings()
    assert usual["mqtt"]["listen"] == ["127.0.0.1:1884"]


def test_files_of_a_folder_are_read_where_they_are_included(convert):
    lines = ["include_dir conf.d", "allow_anonymous true"]
    files = {"conf.d__b.conf": "listener 1884\nretain_available false", "conf.d__a.conf": "listener 1883 127.0.0.1"}
    made = convert(*lines, **files, **{"conf.d__note.txt": "listener 1"})
    assert made.settings()["mqtt"]["listen"] == ["127.0.0.1:1883", "0.0.0.0:1884"]
    assert made.left_out == ["conf.d/b.conf:2: retain_available false"]


def test_clients_come_in_without_a_name_where_the_first_word_says_so(convert):
    for said, expected in (("1", True), ("true  # for now", True), ("0", False), ("false", False)):
        assert convert("listener 1883", f"allow_anonymous {said}").settings()["auth"]["mqtt_anonymous"] is expected


def test_lines_that_say_what_the_gateway_does_anyway_are_not_left_out(convert):
    lines = ("queue_qos0_messages", "retain_available", "allow_zero_length_clientid")
    bridge = ("connection up", "address h", "topic # out", "cleansession false", "notifications false")
    made = convert(*(f"{line} true" for line in lines), *bridge, "start_type automatic")
    assert made.left_out == []
    made = convert("queue_qos0_messages false", *bridge, "notifications true")
    assert made.left_out == ["m.conf:1: queue_qos0_messages false", "m.conf:7: notifications true"]
