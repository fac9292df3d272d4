from __future__ import annotations

import pytest

from tests.conformance.mqtt.sides import Side


@pytest.fixture
def side(request, tmp_path):
    """A door with clients of one version, which `keeps` names."""
    side = Side(request.param, tmp_path / "data")
    yield side
    side.close()
