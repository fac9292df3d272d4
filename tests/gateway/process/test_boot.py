from __future__ import annotations

from gateway.process.boot import find_boot


def test_a_start_of_the_machine_has_its_number_and_what_does_not_say_it_is_zero(tmp_path):
    told = tmp_path / "boot_id"
    told.write_text("b5c3fbb6-5f9a-4be6-9a30-6c7f5fd5a9e1\n", encoding="ascii")
    assert find_boot(told) == 0xB5C3FBB65F9A4BE6
    told.write_text("no number\n", encoding="ascii")
    assert find_boot(told) == find_boot(tmp_path / "none") == 0
    assert find_boot() == find_boot()
