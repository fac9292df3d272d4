from __future__ import annotations

import pytest

from tests.support.admin import make_view
from tests.support.gateway import running_gateway


@pytest.mark.asyncio
async def test_what_the_api_looks_at(tmp_path):
    async with running_gateway(tmp_path, free_bytes=lambda: 7) as gateway:
        view = make_view(gateway)
        assert list(view.vhosts) == [view.vhost]
        assert view.disk == "low"
