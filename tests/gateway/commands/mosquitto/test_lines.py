from __future__ import annotations

import pytest

from gateway.commands.mosquitto.lines import Line, MosquittoFileError, read_text, split_lines


def test_lines_are_split_and_comments_passed_over():
    text = "# a comment\n\nlistener 1883  10.0.0.1 \n#topic x\n  persistence\n"
    assert list(split_lines(text, "m.conf")) == [
        Line("m.conf:3", "listener", "1883  10.0.0.1"),
        Line("m.conf:5", "persistence", ""),
    ]


def test_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(MosquittoFileError, match=r"cannot read .*none: No such file"):
        read_text(tmp_path / "none")
    (tmp_path / "latin").write_bytes(b"user M\xfcller\n")
    with pytest.raises(MosquittoFileError, match=r"latin: it is not UTF-8"):
        read_text(tmp_path / "latin")
