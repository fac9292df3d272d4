from __future__ import annotations

from core.store.layout import segment_name, segment_paths


def test_segments_are_named_by_their_first_offset_and_found_in_order(tmp_path):
    for name in (segment_name(1 << 40), segment_name(0), "queues", "offsets", segment_name(5) + ".new"):
        (tmp_path / name).touch()
    assert segment_name(268_435_456) == "00000000000268435456"
    assert [base for base, _ in segment_paths(tmp_path)] == [0, 1 << 40]
