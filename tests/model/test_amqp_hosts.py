"""A virtual host of AMQP beside a model: queues of all kinds that lead to one another, in any order of use.

Steps come in any order: messages through all kinds of exchanges and from MQTT, consumers with priorities and prefetch
and exclusive ones, takings, all ways to give back, transactions, time that passes, queues that end with a lease or a
connection, readers of streams, policies, deletions, a full disk, and kills, also in the middle of a step. Where the
rules leave open what became of a message, a life ends.

`make torture` runs many more of these lives, from a number of its own each time.
"""

from __future__ import annotations

import os

import pytest

from tests.support.amqp_life import Life
from tests.support.engines import MAKERS
from tests.support.lives import told

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_HOST_LIVES", "10"))


@pytest.mark.slow
@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
def test_all_queues_give_what_they_hold_whatever_happens(tmp_path, make_engine):
    for seed in range(FIRST, FIRST + LIVES):
        life = Life(seed, tmp_path / str(seed), make_engine)
        with told(seed, life, lambda life=life: life.world.close()):
            life.run()
