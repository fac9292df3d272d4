from __future__ import annotations

import asyncio
import contextlib
import os
import stat

import pytest
from pamqp.commands import Connection

from gateway.app import Gateway
from gateway.certificate_watch import LOOK_INTERVAL_MS
from gateway.listeners import check_certificates
from gateway.net.layered_transport import OPEN_MS
from gateway.settings.listen import find_address
from gateway.settings.models import (
    AdminSettings,
    AmqpSettings,
    GatewaySettings,
    MqttSettings,
    RocketmqSettings,
    SettingsError,
)
from tests.support import amqp, mqtt
from tests.support.certificates import client_context, issue
from tests.support.gateway import ANY_PORT, make_settings, running_gateway
from tests.support.listening import secure
from tests.support.rocketmq import request_frame


@pytest.mark.asyncio
async def test_each_address_of_each_door_is_told_in_order(tmp_path):
    blocks = {
        "mqtt": MqttSettings(listen=[ANY_PORT, secure(), ANY_PORT]),
        "amqp": AmqpSettings(listen=[secure()]),
        "rocketmq": RocketmqSettings(namesrv="off", broker=[secure(), secure(optional=False)]),
    }
    async with running_gateway(tmp_path, **blocks) as gateway:
        lines = gateway.lines()
        assert [line.split()[1] for line in lines] == ["mqtt", "mqtts", "mqtt", "amqps", "broker", "broker-tls"]
        assert len({line.split()[2] for line in lines}) == len(lines)
        host, port = gateway.listening["mqtt"]
        assert lines[0] == f"listening mqtt {host}:{port}"


HANDSHAKE = (
    Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"),
    Connection.TuneOk(10, 131_072, 0),
    Connection.Open("/"),
)
FIRST_BYTES = {  # of a client of each door, and what stands in the answer that lets it go on
    "mqtt": (mqtt.connect(b""), mqtt.connack()),
    "amqp": (
        amqp.PROTOCOL_HEADER + b"".join(amqp.method(0, one) for one in HANDSHAKE),
        amqp.method(0, Connection.OpenOk()),
    ),
    "broker": (request_frame(105, topic="TBW102"), b"\x00"),
}
REFUSED = b"\0\x0a\0\x32"  # AMQP's connection.close


async def is_let_in(name, address, writers):
    """Return whether one more client that stays is answered."""
    said, answer = FIRST_BYTES[name]
    reader, writer = await asyncio.open_connection(*address)
    writers.append(writer)
    heard = b""
    with contextlib.suppress(ConnectionError):
        writer.write(said)
        while answer not in heard and REFUSED not in heard and (data := await reader.read(4_096)):
            heard += data
    return answer in heard


@pytest.mark.asyncio
@pytest.mark.parametrize("name", FIRST_BYTES)
async def test_limits_of_one_address_are_no_other_s(tmp_path, name):
    listen = [{"address": ANY_PORT, "connections_max": 1}, {"address": ANY_PORT, "connects_rate": 1}, ANY_PORT]
    block = {"broker": {"rocketmq": RocketmqSettings(namesrv="off", broker=listen)}}
    block |= {"mqtt": {"mqtt": MqttSettings(listen=listen)}, "amqp": {"amqp": AmqpSettings(listen=listen)}}
    gateway = Gateway(make_settings(tmp_path, **block[name]))
    gateway._paces._read_ms = lambda: 0
    await gateway.start()
    writers = []
    try:
        bound = [find_address(line.split()[2]) for line in gateway.lines() if line.split()[1] == name]
        served = [await is_let_in(name, address, writers) for address in bound for _ in range(2)]
        assert served == [True, False, True, False, True, True]
        refused = gateway.doors["rocketmq" if name == "broker" else name].metrics.refused
        assert (refused["listener_connections_max"], refused["listener_connects_rate"]) == (1, 1)
    finally:
        for writer in writers:
            writer.close()
        await gateway.stop()


@pytest.mark.asyncio
async def test_half_a_handshake_ends_in_time_at_each_door_and_is_counted_there(tmp_path):
    listens = {
        "mqtt": MqttSettings(listen=[secure(), {**secure(), "websocket": "/mqtt"}]),
        "amqp": AmqpSettings(listen=[secure()]),
        "rocketmq": RocketmqSettings(namesrv=[secure()], broker=[secure()]),
    }
    async with running_gateway(tmp_path, **listens) as gateway:
        lines = [line.split() for line in gateway.lines()]
        assert {name for _, name, _ in lines} == {"mqtts", "wss", "amqps", "broker", "namesrv"}
        stuck = [await asyncio.open_connection(*find_address(address)) for _, _, address in lines]
        for _, writer in stuck:
            writer.write(b"\x16\x03\x01\x02\x00\x01")
        while len(gateway.connections) < len(stuck):
            await asyncio.sleep(0)
        now_ms = gateway.clock.now_ms()
        gateway.timer.run_due(now_ms + OPEN_MS - 5_000)
        assert len(gateway.connections) == len(stuck)
        gateway.timer.run_due(now_ms + OPEN_MS + 5_000)
        for reader, writer in stuck:
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
        assert [door.metrics.refused for door in gateway.doors.values()] == [{"handshake": n} for n in (2, 1, 2)]


def test_certificates_that_cannot_be_used_are_named_with_their_address(tmp_path):
    for block in (
        {"mqtt": MqttSettings(listen=[secure("127.0.0.1:1", key=tmp_path / "none")])},
        {"amqp": AmqpSettings(listen=[secure("127.0.0.1:1", key=tmp_path / "none")])},
        {"rocketmq": RocketmqSettings(broker=[secure("127.0.0.1:1", key=tmp_path / "none")])},
        {"admin": AdminSettings(listen=[secure("127.0.0.1:1", key=tmp_path / "none")])},
        {"rocketmq": RocketmqSettings(namesrv=[secure("127.0.0.1:1", key=tmp_path / "none")])},
    ):
        with pytest.raises(SettingsError, match=r"tls of \w+ on 127\.0\.0\.1:1: cannot read .*/none: No such file"):
            check_certificates(GatewaySettings(**block))
    check_certificates(GatewaySettings(mqtt=MqttSettings(listen=[secure()])))


@pytest.mark.asyncio
async def test_a_gateway_with_a_certificate_that_cannot_be_used_does_not_start(tmp_path):
    (tmp_path / "empty.pem").touch()
    with pytest.raises(SettingsError, match="tls of mqtt on"):
        async with running_gateway(tmp_path, mqtt=MqttSettings(listen=[secure(certificate=tmp_path / "empty.pem")])):
            pass


@pytest.mark.asyncio
async def test_certificates_are_read_again_all_or_none(tmp_path):
    first, second = (issue(tmp_path / name) for name in ("first", "second"))
    blocks = {
        "mqtt": MqttSettings(listen=[secure(certificate=first[0], key=first[1])]),
        "amqp": AmqpSettings(listen=[secure(certificate=second[0], key=second[1])]),
    }
    async with running_gateway(tmp_path / "data", **blocks) as gateway:
        before = [carriage._reading for carriage in gateway.listeners._carriages]
        second[1].write_text("nothing")
        with pytest.raises(SettingsError, match="tls of amqp on"):
            await gateway.reload(make_settings(tmp_path / "data", **blocks))
        assert [carriage._reading for carriage in gateway.listeners._carriages] == before
        issue(tmp_path / "second")
        await gateway.reload(make_settings(tmp_path / "data", **blocks))
        after = [carriage._reading for carriage in gateway.listeners._carriages]
        assert [one.secured for one in before if one.secured] != [one.secured for one in after if one.secured]
        assert len({*map(id, before)} & {*map(id, after)}) == 0


@pytest.mark.asyncio
async def test_mqtt_over_websocket_has_names_of_its_own(tmp_path):
    listen = [{"address": ANY_PORT, "websocket": "/mqtt"}, {**secure(), "websocket": "/mqtt"}]
    async with running_gateway(tmp_path, mqtt=MqttSettings(listen=listen)) as gateway:
        assert [line.split()[1] for line in gateway.lines()][:2] == ["ws", "wss"]


@pytest.mark.asyncio
async def test_unix_sockets_are_told_by_their_path_and_are_gone_after_the_stop(tmp_path):
    path = tmp_path / "mqtt.sock"
    for _ in range(2):
        async with running_gateway(tmp_path / "data", mqtt=MqttSettings(listen=f"unix:{path}")) as gateway:
            assert gateway.lines()[0] == f"listening mqtt unix:{path}"
            assert path.is_socket()
        assert not path.exists()


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", [None, "0660", "600"])
async def test_folder_or_mode_of_a_unix_socket_says_who_may_connect_and_not_the_umask(tmp_path, mode):
    path = tmp_path / "mqtt.sock"
    listen = f"unix:{path}" if mode is None else [{"address": f"unix:{path}", "mode": mode}]
    before = os.umask(0o027)  # as the systemd unit has it
    try:
        async with running_gateway(tmp_path / "data", mqtt=MqttSettings(listen=listen)):
            assert stat.S_IMODE(path.stat().st_mode) == int(mode or "666", 8)
            _, writer = await asyncio.open_unix_connection(path)
            writer.close()
    finally:
        os.umask(before)


@pytest.mark.asyncio
async def test_a_certificate_that_was_replaced_counts_for_new_connections_without_a_signal(tmp_path):
    files = issue(tmp_path / "server")
    entry = secure(certificate=files[0], key=files[1])
    async with running_gateway(tmp_path / "data", mqtt=MqttSettings(listen=[entry])) as gateway:
        (before,) = gateway.listeners.certificates()
        assert (before.name, before.address) == ("mqtts", ANY_PORT)
        context = client_context()
        context.check_hostname = False
        old = await asyncio.open_connection(*gateway.listening["mqtts"], ssl=context)
        issue(tmp_path / "server", "new.test")
        for number in (1, 2):
            gateway.timer.run_due(gateway.clock.now_ms() + number * 2 * LOOK_INTERVAL_MS)
            while gateway.listeners.watch._task is not None:
                await asyncio.sleep(0)
        (after,) = gateway.listeners.certificates()
        assert after.certificates[0].names == ("new.test",)
        new = await asyncio.open_connection(*gateway.listening["mqtts"], ssl=context)
        shown = [writer.get_extra_info("ssl_object").getpeercert()["subjectAltName"] for _, writer in (old, new)]
        assert shown[0] != shown[1] == (("DNS", "new.test"),)
        for reader, writer in (old, new):
            writer.write(b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x00\x00\x03abc")
            assert await reader.readexactly(4) == b"\x20\x02\x00\x00"
            writer.close()
