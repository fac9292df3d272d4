from __future__ import annotations

import os
import time

from gateway.admin.process_metrics import process_families


def test_memory_and_time_are_those_of_this_process():
    found = {family.name: family.samples[0].value for family in process_families()}
    assert 1 << 20 < found["process_resident_memory_bytes"] < found["process_virtual_memory_bytes"]
    assert time.time() - 24 * 3600 < found["process_start_time_seconds"] < time.time()
    assert found["lmq_build_info"] == 1
    again = {family.name: family.samples[0].value for family in process_families()}
    assert again["process_start_time_seconds"] == found["process_start_time_seconds"]
    assert 0 < found["process_cpu_seconds"] <= sum(os.times()[:2]) + 1
