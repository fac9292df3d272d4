from __future__ import annotations

import asyncio
import contextlib
import ipaddress

import pytest
import uvloop

from lmq import ClosedError, ConnectFailedError, ConnectionLostError, RequestTimeoutError
from lmq.client import Client, find_own_address, make_client_id, parse_server
from lmq.remoting.commands import FLAG_ONE_WAY, Command, answer, encode_command
from tests.support.remoting_server import RemotingServer


@pytest.mark.asyncio
async def test_answers_find_their_requests_in_any_order(server):
    waiting: list[Command] = []

    def hold_back(request: Command) -> bytes:
        waiting.append(request)
        if len(waiting) < 3:
            return b""
        return b"".join(encode_command(answer(one, 0, one.ext["name"])) for one in reversed(waiting))

    server.on[1] = hold_back
    client = Client(server.address)
    answers = await asyncio.gather(*(client.request(Command(1, ext={"name": name})) for name in "abc"))
    assert [one.remark for one in answers] == ["a", "b", "c"]
    assert server.connections == 1
    await client.close()


@pytest.mark.asyncio
async def test_no_answer_in_time_is_a_timeout_and_costs_nothing_else(server):
    server.on[1] = lambda request: None
    client = Client(server.address, timeout_s=0.05)
    with pytest.raises(RequestTimeoutError) as caught:
        await client.request(Command(1))
    assert caught.value.timeout_s == 0.05
    assert (await client.request(Command(2))).code == 0
    await client.close()


@pytest.mark.asyncio
async def test_a_lost_connection_fails_what_waits_and_the_next_request_connects_anew(server):
    def drop(request: Command) -> None:
        server.drop_all()

    server.on[1] = drop
    client = Client(server.address)
    with pytest.raises(ConnectionLostError):
        await client.request(Command(1))
    assert (await client.request(Command(2))).code == 0
    assert server.connections == 2
    await client.close()


@pytest.mark.asyncio
async def test_connecting_is_tried_again_until_the_server_is_there(server):
    await server.vanish()
    client = Client(server.address, timeout_s=5)
    request = asyncio.create_task(client.request(Command(1)))
    await asyncio.sleep(0)
    await server.listen()
    assert (await request).code == 0
    await client.close()


@pytest.mark.asyncio
async def test_a_back_off_that_is_longer_than_a_request_may_take_ends_all_the_same(server):
    await server.vanish()
    client = Client(server.address, timeout_s=0.01)  # the shortest back-off is 25 ms
    for _ in range(3):
        with pytest.raises(ConnectFailedError):
            await client.request(Command(1))
    await server.listen()
    async with asyncio.timeout(20):
        while not server.requests:
            with contextlib.suppress(ConnectFailedError):
                await client.request(Command(1))
    await client.close()


@pytest.mark.asyncio
async def test_nobody_there_is_an_error_that_names_the_address(server):
    await server.vanish()
    client = Client(server.address, timeout_s=0.05)
    with pytest.raises(ConnectFailedError, match=server.address):
        await client.request(Command(1))


@pytest.mark.asyncio
async def test_all_who_wait_for_a_server_that_is_not_there_wait_together(server):
    await server.vanish()
    client = Client(server.address, timeout_s=0.5)
    async with asyncio.timeout(20):  # one after the other they would take 50 s
        outcomes = await asyncio.gather(*(client.request(Command(1)) for _ in range(100)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {ConnectFailedError}


@pytest.mark.asyncio
async def test_a_server_that_speaks_something_else_is_left(server):
    server.on[1] = lambda request: b"HTTP/1.1 400 Bad Request\r\n\r\n"
    client = Client(server.address)
    with pytest.raises(ConnectionLostError):
        await client.request(Command(1))
    await client.close()


@pytest.mark.asyncio
async def test_requests_and_strange_answers_of_the_broker_are_let_go(server):
    strange = encode_command(Command(40, opaque=1)) + encode_command(Command(0, 999, 1))
    server.on[1] = lambda request: strange + encode_command(answer(request, 7))
    client = Client(server.address)
    assert (await client.request(Command(1))).code == 7
    await client.close()


@pytest.mark.asyncio
async def test_a_new_connection_begins_with_a_greeting_that_is_repeated(server):
    heard = asyncio.Event()

    def hear(request: Command) -> None:
        if sum(one.code == 34 for one in server.requests) == 3:
            heard.set()

    server.on[34] = hear
    client = Client(server.address, greeting=lambda: Command(34), heartbeat_s=0.01)
    await client.request(Command(1))
    assert [one.code for one in server.requests[:2]] == [34, 1]
    assert server.requests[0].is_one_way
    await asyncio.wait_for(heard.wait(), 20)
    await client.close()


@pytest.mark.asyncio
async def test_a_closed_client_asks_nothing(server):
    client = Client(server.address)
    await client.request(Command(1))
    await client.close()
    with pytest.raises(ClosedError):
        await client.request(Command(1))


@pytest.mark.asyncio
@pytest.mark.parametrize("turns", range(1, 7))
async def test_a_client_that_is_closed_while_it_connects_leaves_nothing_open(server, turns):
    client = Client(server.address, greeting=lambda: Command(34))
    asking = asyncio.create_task(client.request(Command(1)))
    for _ in range(turns):
        await asyncio.sleep(0)
    await client.close()
    with contextlib.suppress(ClosedError, ConnectionLostError):  # it may have been answered just before
        await asking
    assert not client.is_open
    assert asyncio.all_tasks() == {asyncio.current_task()}
    async with asyncio.timeout(20):
        while server.has_connections:
            await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_many_requests_share_one_connection(server):
    client = Client(server.address)
    answers = await asyncio.gather(*(client.request(Command(1, body=b"x" * 10_000)) for _ in range(500)))
    assert [one.code for one in answers] == [0] * 500
    assert server.connections == 1
    await client.close()


@pytest.mark.asyncio
async def test_one_way_requests_wait_for_nothing(server):
    client = Client(server.address)
    await client.send_one_way(Command(5))
    await client.request(Command(6))
    assert [one.code for one in server.requests] == [5, 6]
    assert server.requests[0].is_one_way
    await client.close()


@pytest.mark.asyncio
async def test_white_space_around_a_server_is_let_go(server):
    client = Client(f" {server.address}\n")
    assert (await client.request(Command(1))).code == 0
    await client.close()


@pytest.mark.parametrize("text", ["", "h", "h:", "h:x", ":"])
def test_a_server_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="HOST:PORT"):
        Client(text)


def test_client_identifiers_are_distinct():
    assert make_client_id() != make_client_id()


def test_the_client_works_on_uvloop():
    async def ask() -> int:
        async with RemotingServer() as server:
            client = Client(server.address)
            response = await client.request(Command(1))
            await client.close()
            return response.code

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(ask()) == 0


@pytest.mark.parametrize(
    ("text", "address"),
    [("broker:9876", ("broker", 9876)), ("[::1]:9876", ("::1", 9876)), ("::1:9876", ("::1", 9876))],
)
def test_a_server_is_host_and_port(text, address):
    assert parse_server(text) == address


@pytest.mark.parametrize(
    "text", ["", "9876", "host:", "host:x", "host:-1", "host:65536", "host:\u0661", "http://host:1"]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="HOST:PORT"):
        Client(text)


async def _until(happened) -> None:
    async with asyncio.timeout(20):
        while not happened():
            await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_what_the_broker_asks_is_answered_and_what_is_not_known_is_said_to_be_so(server):
    asked: list[int] = []

    def answer_40(request: Command) -> Command | None:
        asked.append(request.code)
        return answer(request, 0, "done") if request.code == 40 else None

    client = Client(server.address, answerer=answer_40)
    await client.request(Command(1))
    for code, flag in ((40, 0), (41, 0), (40, FLAG_ONE_WAY)):
        server.ask(Command(code, opaque=code, flag=flag))
    await _until(lambda: len(asked) == 3 and len(server.answers) == 2)
    await client.request(Command(1))  # nothing comes after
    assert [(one.opaque, one.code, one.remark) for one in server.answers] == [
        (40, 0, "done"),
        (41, 3, "request type 41 not supported"),
    ]
    await client.close()


@pytest.mark.asyncio
async def test_a_client_without_an_answerer_knows_nothing_that_is_asked(server):
    client = Client(server.address)
    await client.request(Command(1))
    server.ask(Command(40, opaque=7))
    await _until(lambda: server.answers)
    assert (server.answers[0].opaque, server.answers[0].code) == (7, 3)
    await client.close()


def test_a_client_identifier_begins_with_the_address_of_its_machine():
    one, other = make_client_id(), make_client_id()
    assert one != other
    assert one.partition("@")[0] == find_own_address()
    assert ipaddress.ip_address(find_own_address())


@pytest.mark.asyncio
async def test_a_connection_by_which_nothing_came_is_given_up(server):
    server.on[1] = lambda request: None
    client = Client(server.address, timeout_s=0.1)
    for connections in (1, 2):
        with pytest.raises(RequestTimeoutError):
            await client.request(Command(1))
        assert server.connections == connections
    await client.close()


@pytest.mark.asyncio
async def test_a_connection_by_which_others_were_answered_stays(server):
    server.on[1] = lambda request: None
    client = Client(server.address, timeout_s=0.2)
    waiting = asyncio.create_task(client.request(Command(1)))
    while not waiting.done():
        assert (await client.request(Command(2))).code == 0
        await asyncio.sleep(0.01)
    assert isinstance(waiting.exception(), RequestTimeoutError)
    assert (await client.request(Command(2))).code == 0
    assert server.connections == 1
    await client.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("ask", [Client.request, Client.send_one_way], ids=["request", "one-way"])
async def test_nobody_waits_for_ever_for_room_in_the_output(ask):
    held = []

    async def never_read(_reader, writer):
        writer.transport.pause_reading()
        held.append(writer)

    listening = await asyncio.start_server(never_read, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    client = Client(f"127.0.0.1:{port}", timeout_s=1)  # in less a busy machine may not connect
    try:
        async with asyncio.timeout(60):
            with pytest.raises(RequestTimeoutError):
                while True:
                    await ask(client, Command(1, body=bytes(1 << 20)))
            await client.close()
    finally:
        listening.close()
        for writer in held:
            writer.transport.abort()


@pytest.mark.asyncio
async def test_a_host_that_no_name_can_be_is_not_reached():
    client = Client("a..b:9876", timeout_s=0.1)
    with pytest.raises(ConnectFailedError):
        await client.request(Command(1))
    await client.close()


class LostTransport:
    """Stands for one that was lost, of which the loop tells in its next turn."""

    def __init__(self):
        self.written = []

    def is_closing(self):
        return True

    def write(self, data):
        self.written.append(data)


@pytest.mark.asyncio
async def test_nothing_is_written_to_a_connection_that_is_being_lost(server):
    client = Client(server.address)
    assert (await client.request(Command(1))).code == 0
    link = client._find_link()
    link.close()
    link._transport = lost = LostTransport()
    waiting = [await client.start_request(Command(1)) for _ in range(20)]
    for one in waiting:
        with pytest.raises(ConnectionLostError):
            await client.wait_for(one)
    assert (await client.request(Command(1))).code == 0
    assert lost.written == []
    await client.close()
