from __future__ import annotations

import pytest

from gateway.admin.rosters.searching import Search, find_hits

pytestmark = pytest.mark.asyncio
NAMES = ["Abab", "b", "", "xAB", "ba", "aB ab", "c", "ab"]


@pytest.mark.parametrize("word", ["ab", "b", "abab", "zz", "b\na", "\n", " ", ""])
@pytest.mark.parametrize("size", [1, 3, 8])
async def test_names_with_a_word_are_found_in_any_text_as_by_asking_each(word, size):
    texts = ["\n".join(NAMES[at : at + size]) for at in range(0, len(NAMES), size)]
    for count in (8, 7):  # the last one came when it was asked already
        for told in (word, ""):
            hits = await find_hits(Search(lambda name: word in name.lower(), told), texts, size, count)
            assert list(hits) == [word in name.lower() for name in NAMES[:count]]
