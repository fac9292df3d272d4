from __future__ import annotations

import pytest

from tests.support.gateway import GatewayProcess


@pytest.fixture(scope="package")
def running(tmp_path_factory):
    """A gateway that all tests of this folder share."""
    with GatewayProcess(tmp_path_factory.mktemp("data")) as gateway:
        yield gateway
