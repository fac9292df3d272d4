from __future__ import annotations

import io
import os

import pytest

from gateway.commands.doors import feeding
from gateway.commands.doors.feeding import read_chunks
from gateway.commands.doors.traffic import LinkError

pytestmark = pytest.mark.asyncio


async def test_files_and_stdin_are_read_as_they_come(tmp_path, monkeypatch):
    body = os.urandom(200_000)
    (tmp_path / "body").write_bytes(body)
    assert b"".join([chunk async for chunk in read_chunks(str(tmp_path / "body"))]) == body
    monkeypatch.setattr(feeding.sys, "stdin", io.TextIOWrapper(io.BytesIO(b"piped")))
    assert [chunk async for chunk in read_chunks(None)] == [b"piped"]
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe, os.fdopen(writing, "wb", 0) as end:
        monkeypatch.setattr(feeding.sys, "stdin", pipe)
        chunks = read_chunks("-")
        end.write(b"one")
        assert await anext(chunks) == b"one"
        end.close()
        assert [chunk async for chunk in chunks] == []


async def test_what_cannot_be_read_is_told(tmp_path):
    with pytest.raises(LinkError, match=r"cannot read .*none: No such file") as failed:
        await anext(read_chunks(str(tmp_path / "none")))
    assert failed.value.code == 2
