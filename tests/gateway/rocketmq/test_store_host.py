from __future__ import annotations

import ipaddress
from functools import partial

import pytest

from core.settings import StoreSettings
from gateway.admin.asking import ask
from gateway.rocketmq.store_host import find_host, pack_address, plain_host
from gateway.settings.models import RocketmqSettings
from lmq import Producer, PullConsumer
from lmq.remoting.message_codec import decode_records
from tests.support.gateway import ANY_PORT, running_gateway


def test_addresses_are_written_as_clients_read_them():
    assert pack_address("127.0.0.1", 10911).hex() == "7f00000100002a9f"
    assert len(pack_address("::1", 1)) == 20
    assert pack_address("::ffff:10.0.0.1", 1).hex() == "0a00000100000001"
    assert plain_host(bytes(16)) == bytes(16)


def test_names_are_looked_up_and_a_socket_on_all_addresses_has_the_machines_own():
    assert find_host("10.1.2.3") == "10.1.2.3"
    assert find_host("localhost") == "127.0.0.1"
    assert find_host("no-such-host.invalid") is None
    for every in ("0.0.0.0", "::", ""):
        own = ipaddress.ip_address(find_host(every))
        assert not own.is_unspecified


async def _stamped(gateway) -> tuple[str, int]:
    """Return the host and port that a message sent now is stamped with, which its identifier carries too."""
    namesrv = "{}:{}".format(*gateway.listening["namesrv"])
    async with Producer(namesrv) as producer, PullConsumer(namesrv) as consumer:
        result = await producer.send("T", b"x", queue_id=0)
        pulled = await consumer.pull("T", result.queue_offset, queue_id=0)
    assert [message.body for message in pulled.messages] == [b"x"]
    (record,) = decode_records(await ask(partial(gateway.broker.find_record, int(result.msg_id[16:], 16))))
    host = record.store_host
    assert result.msg_id[:16] == host.hex().upper()
    return str(ipaddress.ip_address(host[:-4])), int.from_bytes(host[-4:], "big")


@pytest.mark.asyncio
@pytest.mark.here(reason="a pull that does not wait is told to come again for what is on its way")
async def test_records_are_stamped_with_the_port_that_the_broker_was_given(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        assert await _stamped(gateway) == gateway.listening["broker"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("rocketmq", "store", "stamped"),
    [
        ({"advertised_host": "10.1.2.3", "advertised_port": 7}, {}, ("10.1.2.3", 7)),
        ({"advertised_host": "localhost"}, {}, ("127.0.0.1", None)),
        ({"advertised_host": "no-such-host.invalid"}, {}, ("127.0.0.1", None)),
        ({"broker": "off"}, {}, ("127.0.0.1", None)),
        ({"advertised_host": "10.1.2.3"}, {"store_host": "10.9.9.9", "store_port": 9}, ("10.9.9.9", 9)),
    ],
)
@pytest.mark.here(reason="a pull that does not wait is told to come again for what is on its way")
async def test_settings_say_what_records_are_stamped_with(tmp_path, rocketmq, store, stamped):
    blocks = {"rocketmq": RocketmqSettings(**({"namesrv": ANY_PORT, "broker": ANY_PORT} | rocketmq))}
    blocks["store"] = StoreSettings(segment_bytes=1 << 20, **store)
    async with running_gateway(tmp_path, **blocks) as gateway:
        port = gateway.listening.get("broker", gateway.listening["namesrv"])[1]
        if "advertised_host" in rocketmq:
            assert gateway.store.store_host == pack_address(stamped[0], stamped[1] or port)
        else:
            assert await _stamped(gateway) == (stamped[0], port)
