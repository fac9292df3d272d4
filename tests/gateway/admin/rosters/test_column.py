from __future__ import annotations

from gateway.admin.rosters.column import NAME, Column


def test_the_least_comes_first_unless_it_is_said():
    column = Column(NAME, str)
    assert (column.reverse, column._replace(reverse=True).reverse) == (False, True)
