from __future__ import annotations

import pytest

from tests.support.commands import kept_levels
from tests.support.gateway import DOORS, GatewayProcess


@pytest.fixture(autouse=True)
def _log_as_it_was():
    with kept_levels():
        yield


@pytest.fixture(scope="package")
def running(tmp_path_factory):
    """A gateway that all tests of this folder share."""
    with GatewayProcess(tmp_path_factory.mktemp("data"), doors=DOORS) as gateway:
        yield gateway
