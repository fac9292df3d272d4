from __future__ import annotations

import pytest
from fastapi import HTTPException

from gateway.admin.management.places import find_vhosts, get_exchange, get_queue, get_vhost
from tests.support.admin import declare, make_view
from tests.support.gateway import running_gateway


@pytest.mark.asyncio
async def test_what_a_path_names_is_found_or_said_to_be_missing(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        view = make_view(gateway)
        vhost = get_vhost(view, "/")
        (queue,) = declare(gateway, "a/b")
        assert get_queue(vhost, "a/b") is queue
        assert get_exchange(vhost, "amq.default").name == ""
        assert list(find_vhosts(view, None)) == list(find_vhosts(view, "/")) == [vhost]
        for missing in (
            lambda: get_vhost(view, "x"),
            lambda: get_queue(vhost, "x"),
            lambda: get_exchange(vhost, "x"),
        ):
            with pytest.raises(HTTPException) as raised:
                missing()
            assert raised.value.status_code == 404
