"""Text files: compression, encoding, hashes and missing ones."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from assay.config import Reading
from assay.datasets.files import (
    ByteStream,
    Input,
    cut_lines,
    find_lines,
    find_place,
    plain_suffix,
    read_head,
    read_source,
)
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[str, str | bytes], str]

PLAIN = b'{"id":"1"}\n'
PACKED = {
    "plain": PLAIN,
    "gzip": gzip.compress(PLAIN),
    "gzip members": gzip.compress(PLAIN[:5]) + gzip.compress(PLAIN[5:]),
    "zstd": zstandard.compress(PLAIN),
    "zstd frames": zstandard.compress(PLAIN[:5]) + zstandard.compress(PLAIN[5:]),
}


def _input(path: str, encoding: str | None = None) -> Input:
    return Input(Path(path), path, Reading(encoding=encoding))


def _read(path: str, encoding: str | None = None) -> str:
    return read_source(_input(path, encoding)).text


@pytest.mark.parametrize("kind", PACKED)
def test_compression_is_seen_by_the_first_bytes_and_the_hash_is_that_of_the_content(
    kind: str, write: Write
) -> None:
    file = _input(write("rows.jsonl", PACKED[kind]))
    source = read_source(file)
    assert source.text == PLAIN.decode()
    assert source.sha256 == hashlib.sha256(PLAIN).hexdigest()
    assert read_head(file) == PLAIN


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_cut_stream_is_named(kind: str, write: Write) -> None:
    long = b"".join(b"%d," % n for n in range(5000))
    packed = gzip.compress(long) if kind == "gzip" else zstandard.compress(long)
    with pytest.raises(InputError, match=f"unexpected end of {kind} stream"):
        _read(write("rows.jsonl", packed[:-20]))


@pytest.mark.parametrize("magic", [b"\x1f\x8b", b"\x28\xb5\x2f\xfd"])
def test_a_broken_stream_is_named(magic: bytes, write: Write) -> None:
    with pytest.raises(InputError, match=r"rows\.jsonl: broken compression"):
        _read(write("rows.jsonl", magic + b"not compressed, whatever the first bytes say"))


def test_the_head_of_a_broken_stream_is_empty(write: Write) -> None:
    path = write("rows.jsonl", b"\x1f\x8b" + b"not compressed at all, truly")
    assert not read_head(_input(path))


def test_a_byte_order_mark_is_dropped(write: Write) -> None:
    assert _read(write("a.csv", b"\xef\xbb\xbfquery\n")) == "query\n"


def test_a_bad_byte_is_named_with_its_line(write: Write) -> None:
    with pytest.raises(InputError, match=r":3: byte 0xFC is not UTF-8") as caught:
        _read(write("a.csv", "query\nü\nM".encode() + b"\xfcller\n"))
    assert caught.value.line == 3


def test_a_missing_file_names_the_nearest(write: Write) -> None:
    path = write("support.jsonl", PLAIN)
    with pytest.raises(InputError, match=r"no such file; did you mean .*support\.jsonl\?"):
        _read(path.replace("support", "suport"))


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder .*nowhere does not exist"):
        _read(str(tmp_path / "nowhere" / "a.csv"))


@pytest.mark.parametrize(
    ("name", "suffix"), [("a.CSV", ".csv"), ("a.b.jsonl.gz", ".jsonl"), ("a.gz", ""), ("a", "")]
)
def test_the_suffix_disregards_compression_and_case(name: str, suffix: str) -> None:
    assert plain_suffix(Path(name)) == suffix


def test_places_are_counted_from_one() -> None:
    text = "ab\ncd\n\nef"
    assert find_place(text, 0) == (1, 1)
    assert find_place(text, 4) == (2, 2)
    assert find_lines(text, [0, 3, 4, 7]) == [1, 2, 2, 4]


def test_files_of_the_field(field: Path) -> None:
    texts = [_read(str(path)) for path in sorted((field / "F020").glob("rows.*"))]
    assert [len(text.splitlines()) for text in texts] == [3, 3]
    assert len(_read(str(field / "F020" / "members.jsonl.gz")).splitlines()) == 3
    with pytest.raises(InputError, match="unexpected end of gzip stream"):
        _read(str(field / "F020" / "truncated.jsonl.gz"))
    with pytest.raises(InputError, match=r"bad_utf8\.jsonl:2: byte 0xC3"):
        _read(str(field / "F003" / "bad_utf8.jsonl"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_a_mark_names_the_encoding(encoding: str, write: Write) -> None:
    mark = "" if encoding in {"utf-16", "utf-32", "utf-8-sig"} else "\ufeff"
    assert _read(write("a.csv", f"{mark}Größe\n".encode(encoding))) == "Größe\n"


def test_an_encoding_is_taken_at_its_word(write: Write) -> None:
    path = write("a.csv", "a\nMüller \u2013 “Café”\n".encode("cp1252"))
    assert _read(path, "cp1252") == "a\nMüller \u2013 “Café”\n"
    with pytest.raises(InputError, match=r":2: byte 0xFC is not ascii"):
        _read(path, "ascii")
    with pytest.raises(InputError, match=r"not start with BOM"):
        _read(path, "utf-16")


def test_an_odd_byte_of_an_encoding_is_named_with_its_line(write: Write) -> None:
    path = write("a.csv", b"ok\nok\n\x81\n")
    with pytest.raises(InputError, match=r":3: byte 0x81 is not cp1252"):
        _read(path, "cp1252")


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("chunk", [1, 2, 5, 1000])
def test_blocks_hold_whole_lines_whatever_the_chunks(size: int, chunk: int) -> None:
    data = b"a\n\nbcd\n" + b"e" * 20 + b"\nf"
    chunks = [data[start : start + chunk] for start in range(0, len(data), chunk)]
    blocks = list(cut_lines(chunks, size))
    assert b"".join(block for _, block in blocks) == data
    assert all(block.endswith(b"\n") for _, block in blocks[:-1])
    read = b""
    for first, block in blocks:
        assert first == 1 + read.count(b"\n")
        read += block


def test_a_stream_is_hashed_before_it_is_decoded(write: Write) -> None:
    data = "Größe\n".encode("utf-16")
    stream = ByteStream(_input(write("a.csv", data)))
    assert b"".join(stream) == "Größe\n".encode()
    assert stream.sha256 == hashlib.sha256(data).hexdigest()
