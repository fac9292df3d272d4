from __future__ import annotations

import pytest

from lmq import ConnectFailedError, ResponseError
from lmq.remoting.commands import answer
from lmq.subscription import make_subscription
from lmq.subscription_check import Subscribed, SubscriptionCheck
from tests.support.scripted_broker import routes_to, serve_topics

pytestmark = pytest.mark.asyncio

WRONG = make_subscription("T", sql="a > ")


@pytest.fixture
def refusing(server):
    serve_topics(server)
    server.on[46] = lambda request: answer(request, 23, "what is that")
    return server


async def test_tags_need_no_check(server):
    check = SubscriptionCheck(routes_to(server), "g", "me")
    await check.check(make_subscription("T", "a"))
    await check.begin(make_subscription("T"), pytest.fail)
    assert server.requests == []
    await Subscribed()


async def test_a_refusal_is_raised_where_it_is_waited_for_and_told_in_any_case(refusing):
    routes, refused = routes_to(refusing), []
    check = SubscriptionCheck(routes, "g", "me")
    with pytest.raises(ResponseError, match="what is that"):
        await check.begin(WRONG, refused.append)
    assert refused == [WRONG]
    check.begin(WRONG, refused.append)
    await check.stop()
    await routes.close()


async def test_a_broker_that_is_away_refuses_nothing():
    class Away:
        async def find_for_send(self, _topic):
            raise ConnectFailedError("b:1", "nobody")

    check = SubscriptionCheck(Away(), "g", "me")
    with pytest.raises(ConnectFailedError):
        await check.begin(WRONG, pytest.fail)
    await check.stop()
