from __future__ import annotations

import asyncio
import gc

import pytest

from lmq import ClosedError, ConnectFailedError, ConnectionLostError, NotFoundError, SdkError, routes as routes_module
from lmq.remoting.commands import Command, answer, encode_json
from lmq.routes import Route, Routes
from tests.support.remoting_server import RemotingServer
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio

ROUTE = {
    "brokerDatas": [{"brokerAddrs": {"0": "h:1", "1": "slave:2"}, "brokerName": "b", "cluster": "c"}],
    "queueDatas": [{"brokerName": "b", "readQueueNums": 3, "writeQueueNums": 2, "perm": 6}],
}


def routes_of(server, *others: str) -> Routes:
    return Routes(";".join((*others, server.address)), timeout_s=1, greeting=lambda: Command(34))


async def test_a_route_is_asked_for_once_until_it_is_forgotten(server):
    server.on[105] = lambda request: answer(request, 0, body=encode_json(ROUTE))
    routes = routes_of(server)
    assert await routes.find("T") == [Route("b", "h:1", 3, 2)]
    assert await routes.find("T") == [Route("b", "h:1", 3, 2)]
    assert len(server.requests) == 1
    assert server.requests[0].ext["topic"] == "T"
    routes.forget("T")
    await routes.find("T")
    assert len(server.requests) == 2
    await routes.close()


async def test_all_who_ask_at_once_get_one_answer(server):
    server.on[105] = lambda request: answer(request, 0, body=encode_json(ROUTE))
    routes = routes_of(server)
    found = await asyncio.gather(*(routes.find("T") for _ in range(10)))
    assert found == [[Route("b", "h:1", 3, 2)]] * 10
    assert len(server.requests) == 1
    await routes.close()


async def test_one_who_waits_no_more_takes_the_answer_from_nobody(server):
    server.on[105] = lambda request: answer(request, 0, body=encode_json(ROUTE))
    routes = routes_of(server)
    first, second = (asyncio.create_task(routes.find("T")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == [Route("b", "h:1", 3, 2)]
    assert first.cancelled()
    assert len(server.requests) == 1
    await routes.close()


async def test_an_error_that_nobody_waits_for_any_more_is_not_reported(server):
    reported = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["message"]))
    server.on[105] = lambda request: None
    routes = routes_of(server)
    waiting = [asyncio.create_task(routes.find("T")) for _ in range(2)]
    await until(lambda: server.requests)
    while waiting:
        waiting[0].cancel()
        await asyncio.wait([waiting.pop(0)])
    server.drop_all()
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    gc.collect()
    assert reported == []
    await routes.close()


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("turns", [1, 2, 3, 50])
async def test_who_waits_for_a_route_when_all_is_closed_is_told_so_at_once(server, is_there, turns):
    server.on[105] = lambda request: None
    if not is_there:
        await server.vanish()
    routes = Routes(f"{server.address};{server.address}", timeout_s=60, greeting=lambda: Command(34))
    waiting = [asyncio.create_task(routes.find("T")) for _ in range(2)]
    for _ in range(turns):
        await asyncio.sleep(0)
    await routes.close()
    assert asyncio.all_tasks() <= {asyncio.current_task(), *waiting}
    async with asyncio.timeout(20):
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ClosedError] * 2


async def test_while_all_is_being_closed_no_route_is_asked_for(server):
    server.on[105] = lambda request: None
    routes = routes_of(server)
    waiting = asyncio.create_task(routes.find("T"))
    await until(lambda: server.requests)
    closing = asyncio.create_task(routes.close())
    await asyncio.sleep(0)
    assert not closing.done()
    for find in (routes.find("U"), waiting):
        with pytest.raises(ClosedError):
            await find
    await closing
    assert [request.ext["topic"] for request in server.requests] == ["T"]


async def test_what_was_said_holds_while_the_name_server_is_away(server):
    server.on[105] = lambda request: answer(request, 0, body=encode_json(ROUTE))
    routes = routes_of(server)
    await routes.find("T")
    await server.vanish()
    routes.forget("T")
    assert await routes.find("T") == [Route("b", "h:1", 3, 2)]
    with pytest.raises(ConnectFailedError):
        await routes.find("U")
    await routes.close()
    routes.forget("T")
    with pytest.raises(ClosedError):
        await routes.find("T")


async def test_a_topic_that_is_gone_is_remembered_no_more(server):
    server.on[105] = lambda request: answer(request, 0, body=encode_json(ROUTE))
    routes = routes_of(server)
    await routes.find("T")
    server.on[105] = lambda request: answer(request, 17, "none")
    routes.forget("T")
    with pytest.raises(NotFoundError):
        await routes.find("T")
    await server.vanish()
    with pytest.raises((ConnectFailedError, ConnectionLostError)):
        await routes.find("T")
    await routes.close()


async def test_an_unknown_topic_is_not_found_and_a_send_takes_the_template(server):
    def say(request: Command) -> Command:
        known = request.ext["topic"] == "TBW102"
        return answer(request, 0, body=encode_json(ROUTE)) if known else answer(request, 17, "none")

    server.on[105] = say
    routes = routes_of(server)
    with pytest.raises(NotFoundError):
        await routes.find("T")
    assert await routes.find_for_send("T") == [Route("b", "h:1", 3, 2)]
    await routes.close()


async def test_light_queues_are_found_by_the_cluster_whose_keys_are_bare_numbers(server):
    text = b'{"brokerAddrTable":{"b":{"brokerAddrs":{0:"h:1",1:"s:2"},"brokerName":"b"},"c":{"brokerAddrs":{1:"s:3"}}}}'
    server.on[106] = lambda request: answer(request, 0, body=text)
    routes = routes_of(server)
    assert await routes.find("%LMQ%x") == [Route("b", "h:1", 1, 1)]
    await routes.close()


async def test_the_next_name_server_is_asked_when_one_is_not_there(server):
    server.on[105] = lambda request: answer(request, 0, body=encode_json(ROUTE))
    routes = Routes(f"127.0.0.1:1;{server.address}", timeout_s=0.1, greeting=lambda: Command(34))
    assert len(await routes.find("T")) == 1
    await routes.close()


async def test_a_name_server_that_says_nothing_holds_nobody_up_and_is_asked_last_from_then_on(server, monkeypatch):
    monkeypatch.setattr(routes_module, "NEXT_S", 0.01)
    server.on[105] = lambda request: answer(request, 0, body=encode_json(ROUTE))
    async with RemotingServer() as silent:
        silent.on[105] = lambda request: None
        routes = Routes(f"{silent.address};{server.address}", timeout_s=60, greeting=lambda: Command(34))
        async with asyncio.timeout(20):
            assert await routes.find("T") == [Route("b", "h:1", 3, 2)]
            routes.forget("T")
            await routes.find("T")
        assert (silent.codes(), server.codes()) == ([105], [105, 105])
        await routes.close()


async def test_a_refusal_of_one_name_server_is_an_answer(server):
    server.on[105] = lambda request: answer(request, 17, "none")
    async with RemotingServer() as other:
        routes = routes_of(server, other.address)
        other.on[105] = lambda request: answer(request, 17, "none here")
        with pytest.raises(NotFoundError, match="none here"):
            await routes.find("T")
        await routes.close()


async def test_no_name_server_at_all_is_an_error():
    routes = Routes("127.0.0.1:1", timeout_s=0.05, greeting=lambda: Command(34))
    with pytest.raises(ConnectFailedError):
        await routes.find("T")
    await routes.close()
    for wrong in ("", ";", "nowhere"):
        with pytest.raises(ValueError, match=r"server|HOST"):
            Routes(wrong, timeout_s=1, greeting=lambda: Command(34))


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"brokerDatas":5}', encode_json(ROUTE | {"brokerDatas": []})])
async def test_an_answer_without_a_broker_is_an_error(server, body):
    server.on[105] = lambda request: answer(request, 0, body=body)
    routes = routes_of(server)
    with pytest.raises(SdkError):
        await routes.find("T")
    await routes.close()


async def test_after_closing_there_are_no_clients(server):
    routes = routes_of(server)
    client = routes.client_of(Route("b", server.address, 1, 1))
    assert routes.client_of(Route("b", server.address, 1, 1)) is client
    assert routes.clients() == [client]
    await routes.close()
    with pytest.raises(ClosedError):
        routes.client_of(Route("b", server.address, 1, 1))


async def test_queues_that_may_not_be_read_or_written_do_not_count(server):
    for perm, counts in ((6, (3, 2)), (4, (3, 0)), (2, (0, 2)), (0, (0, 0))):
        queues = [{**ROUTE["queueDatas"][0], "perm": perm}]
        server.on[105] = lambda request, queues=queues: answer(
            request, 0, body=encode_json({**ROUTE, "queueDatas": queues})
        )
        routes = routes_of(server)
        (route,) = await routes.find("T")
        assert (route.read_queues, route.write_queues) == counts
        assert len(await routes.queues("T")) == counts[0]
        await routes.close()
