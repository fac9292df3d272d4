from __future__ import annotations

import pytest

from spark_analytics import __main__ as command


def test_without_spark_the_one_line_that_adds_it_is_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "_NEEDED", ("pyarrow_that_is_missing",))
    code = command.main(["fan-out", "--data-dir", str(tmp_path), "--out", str(tmp_path)])
    said = capsys.readouterr().err
    assert code == 2
    assert "pip install 'lmq-gateway[spark]'" in said
    assert said.count("\n") == 1


def test_a_folder_without_a_log_is_one_line_and_exit_code_2(capsys, tmp_path):
    pytest.importorskip("pyspark")
    assert command.main(["fan-out", "--data-dir", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_report_must_be_named(capsys):
    with pytest.raises(SystemExit) as caught:
        command.main([])
    assert caught.value.code == 2
    assert "fan-out" in capsys.readouterr().err
