from __future__ import annotations

from tests.benchmarks.scenarios.page_cache import full_page_cache, memory_free


def test_fills_what_is_free_and_leaves_nothing_behind(tmp_path):
    with full_page_cache(tmp_path) as cache:
        assert cache.fill(1 << 62) == 0
        while not cache.fill(memory_free() - (16 << 20)):  # others may have taken so much meanwhile
            pass
    assert list(tmp_path.iterdir()) == []
