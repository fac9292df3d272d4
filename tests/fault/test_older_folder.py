"""A data folder that an older version wrote is taken as it is: nobody loses a place."""

from __future__ import annotations

import shutil
import tarfile

from core.message import StoredBatch
from core.settings import StoreSettings
from tests.support.mqtt_door import NOW_MS, World
from tests.support.sources import ROOT
from tests.support.store import read_queue

OLD = ROOT / "tests" / "data" / "lmq-gateway-1" / "folder.tar.gz"
TEMPERATURES = b"%LMQ%mqtt%plant%1%temp"
SETTINGS = StoreSettings(segment_bytes=64 * 1024, inline_dispatch_bytes=60)


def test_a_folder_of_the_first_version_is_migrated_at_the_start(tmp_path):
    with tarfile.open(OLD) as packed:
        packed.extractall(tmp_path / "data", filter="data")
    for _ in range(3):  # as it was, after a kill, and after a clean end
        world = World(tmp_path / "data", store_settings=SETTINGS, inflight_max=2)
        offsets = world.broker.consumer_offsets
        assert offsets.get(b"GID_a", TEMPERATURES) == 41
        end = world.broker.max_offset(world.broker.find_queue(TEMPERATURES))
        assert offsets.get(b"GID_b", TEMPERATURES) == end == 90  # 3,000,000,000,123 is kept there, and cut back
        assert offsets.get(b"GID_a", b"LMQ_PARENT/0") == 7
        popped = world.broker.pop.open(TEMPERATURES, b"GID_pop")
        assert (popped.floor, popped.next_offset, popped.unacked_count) == (3, 10, 6)
        (subscription,) = world.door.sessions.find(b"acked").subscriptions.values()
        assert subscription.position == 28
        assert world.store.damage_beside() == {"queue_names": 0, "place": 0, "journal": 0}
        assert [body[:7] for _, body in read_queue(world.store, TEMPERATURES)] == [b"temp-%02d" % k for k in range(90)]
        world.store.flush()
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
        world.close()
        shutil.rmtree(tmp_path / "data")
        (tmp_path / "killed").rename(tmp_path / "data")
    world = World(tmp_path / "data", store_settings=SETTINGS, inflight_max=2)
    durable = world.connect(b"durable", clean=False)
    assert [(one.body, one.dup) for one in durable.take_deliveries()] == [(b"retained-1", True), (b"retained-2", True)]
    batch = StoredBatch(16)
    popped = world.broker.pop.open(TEMPERATURES, b"GID_pop")
    assert popped.take(batch, 10, 1 << 30, NOW_MS + 90_000, NOW_MS + 70_000) == 6
    assert list(batch.queue_offset[:6]) == [3, 4, 6, 7, 8, 9]
    world.close()
