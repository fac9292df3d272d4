from __future__ import annotations

import pytest

from tests.support.store import open_store


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path)
    yield store
    store.close()
