from __future__ import annotations

from gateway.audit.files import AuditFiles

LINE = b"x" * 99 + b"\n"


def test_full_file_makes_room_and_the_oldest_one_goes(tmp_path):
    path = tmp_path / "audit"
    files = AuditFiles(path, bytes_max=200, files_max=3)
    for number in range(9):
        files.append(b"%d" % number + LINE[1:])
    files.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["audit", "audit.1", "audit.2"]
    assert [path.with_name(name).read_bytes()[:1] for name in ("audit", "audit.1", "audit.2")] == [b"8", b"6", b"4"]
    assert path.with_name("audit.1").stat().st_size == 200


def test_what_was_there_before_counts_and_stays(tmp_path):
    path = tmp_path / "audit"
    path.write_bytes(LINE)
    files = AuditFiles(path, bytes_max=200, files_max=2)
    files.append(LINE)
    files.append(LINE)
    files.close()
    assert path.with_name("audit.1").stat().st_size == 200
    assert path.stat().st_size == 100


def test_one_file_alone_begins_anew(tmp_path):
    path = tmp_path / "audit"
    files = AuditFiles(path, bytes_max=200, files_max=1)
    for _ in range(5):
        files.append(LINE)
    files.close()
    assert [one.name for one in tmp_path.iterdir()] == ["audit"]
    assert path.stat().st_size == 100


def test_line_that_is_longer_than_a_file_is_written_whole(tmp_path):
    path = tmp_path / "audit"
    files = AuditFiles(path, bytes_max=200, files_max=2)
    files.append(b"y" * 1_000)
    files.append(LINE)
    files.close()
    assert path.with_name("audit.1").stat().st_size == 1_000
