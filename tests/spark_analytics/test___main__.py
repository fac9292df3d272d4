from __future__ import annotations

import os
import subprocess
import sys

import pytest

from spark_analytics import __main__ as command
from tests.support.fan_out_oracle import random_messages
from tests.support.log_builder import small_settings, write_log


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


@pytest.mark.timeout(300)
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_a_cluster_that_is_none_is_one_line_that_names_the_log(tmp_path):
    write_log(tmp_path / "data", random_messages(1, 5), small_settings())
    out = tmp_path / "out"
    found = subprocess.run(
        [sys.executable, "-m", "spark_analytics", "fan-out", "--data-dir", str(tmp_path / "data"), "--out", str(out)],
        env={**os.environ, "SPARK_MASTER_URL": "nowhere:7077"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 2
    assert found.stderr.endswith(f"(what Spark said is in {out}/spark.log)\n")
    assert found.stderr.count("\n") == 1
    assert "Exception" in (out / "spark.log").read_text()


def test_a_report_must_be_named(capsys):
    with pytest.raises(SystemExit) as caught:
        command.main([])
    assert caught.value.code == 2
    assert "fan-out" in capsys.readouterr().err
