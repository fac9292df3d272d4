from __future__ import annotations

from tests.benchmarks.scenarios.page_cache import full_page_cache, memory_free


def test_fills_what_is_free_and_leaves_nothing_behind(tmp_path):
    free = memory_free()
    with full_page_cache(tmp_path) as cache:
        read = cache.fill(free - (64 << 20))
        assert cache.fill(2 * free) == 0
    assert read > 0
    assert list(tmp_path.iterdir()) == []
