from __future__ import annotations

import pytest

from gateway.address import format_address
from gateway.net.listener import ListenError
from gateway.serving import USE_ERRORS, run_gateway
from tests.support.gateway import GatewayProcess


@pytest.mark.slow
def test_address_that_is_taken_is_an_error_that_the_operator_can_put_right(tmp_path):
    doors = {"amqp": {"listen": "off"}, "rocketmq": {"namesrv": "off", "broker": "off"}, "admin": {"listen": "off"}}
    with GatewayProcess(tmp_path / "first") as first:
        taken = {"mqtt": {"listen": format_address(*first.address("mqtt"))}}
        with pytest.raises(ListenError) as caught:
            run_gateway(None, {"data_dir": str(tmp_path / "second"), **doors, **taken})
    assert isinstance(caught.value, USE_ERRORS)
