from __future__ import annotations

import pytest

from gateway.admin.ours.origins import find_origin, strip_deaths
from gateway.amqp.letters import encode_place


@pytest.mark.parametrize("queue", ["jobs", "a/b", "ü %2F", "\x01\x02", ""])
def test_a_queue_is_found_again_in_its_virtual_host_alone(queue):
    said = encode_place("/", queue)
    assert (find_origin("/", said), find_origin("other", said)) == (queue or None, None)
    assert not set(said) & {1, 2}


@pytest.mark.parametrize("said", [b"", b"/", b"jobs", b"%2F", b"%2F/", b"\xff/\xff"])
def test_what_names_no_queue_is_no_origin(said):
    assert find_origin("/", said) is None


def test_only_what_the_gateway_puts_on_is_taken_off():
    own = ["x-death", "x-first-death-queue", "x-first-death-reason", "x-first-death-exchange", "x-delivery-count"]
    own += ["x-last-death-queue", "x-last-death-reason", "x-last-death-exchange"]
    headers = dict.fromkeys([*own, "x-request-id", "x-deaths", "x-first-death-of-mine"], 1)
    assert list(strip_deaths(headers)) == ["x-request-id", "x-deaths", "x-first-death-of-mine"]
