"""Files as they lie on disk: found, decompressed, hashed, and decoded strictly, whole or block by block."""

from __future__ import annotations

import codecs
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.config import Reading
from assay.datasets.compression import DAMAGE, decompress, describe_damage
from assay.errors import InputError, list_names, nearest_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

HEAD_BYTES = 65_536  # enough to see what kind of file it is
CHUNK_BYTES = 128 << 10  # read at once; small enough to stay in the cache until it is parsed
MARKS = (  # byte order marks; the longer first, as one begins with another
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(slots=True)
class Input:
    """A dataset file and how it is to be read.

    Attributes:
        path: Where it lies.
        shown: Its name in messages and tables, as the user wrote it.
        reading: How it is to be read.
        keep: Something that must live as long as the file is needed (a spooled standard input).
    """

    path: Path
    shown: str
    reading: Reading = field(default_factory=Reading)
    keep: object = None

    @property
    def no_rows(self) -> InputError:
        """The error about a file that holds nothing to score."""
        name = self.path.name if self.keep is None else self.shown
        return InputError(f"no rows in {name}", path=self.shown)


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read whole.

    Attributes:
        path: Where it lies.
        shown: Its name in messages and tables, as the user wrote it.
        text: Its text without a byte order mark; line ends as they are.
        sha256: Hash of its bytes after decompression.
        reading: How it is to be read.
    """

    path: Path
    shown: str
    text: str
    sha256: str
    reading: Reading = field(default_factory=Reading)

    def error(
        self, message: str, *, line: int | None = None, offset: int | None = None, pointer: str = ""
    ) -> InputError:
        """Build an error about this file; `offset` counts characters and becomes line and column."""
        column = None
        if offset is not None:
            line, column = find_place(self.text, offset)
        return InputError(message, path=self.shown, line=line, column=column, pointer=pointer)


class ByteStream:
    """The bytes of a file in chunks, decompressed and as UTF-8 without a byte order mark.

    Attributes:
        file: The file.
        encoding: Encoding of the file, known once the first chunk was read.
    """

    def __init__(self, file: Input) -> None:
        """Open nothing yet."""
        self.file = file
        self.encoding = file.reading.encoding or "utf-8"
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Hash of the bytes read so far, after decompression and before decoding."""
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[bytes]:
        """Yield chunks; what is not in the file's encoding is an error with its line.

        UTF-8 itself is handed on unchecked, as whoever cuts it into lines can name the line.

        Raises:
            InputError: The file is missing or unreadable, its compression is cut or broken, or a byte
                is not of the encoding that a mark or the user names.
        """
        chunks = self._read_raw()
        first = next(chunks, b"")
        while first and len(first) < len(codecs.BOM_UTF32_LE) and (more := next(chunks, b"")):
            first += more
        mark, named = next(((m, name) for m, name in MARKS if first.startswith(m)), (b"", None))
        if named is not None and (self.file.reading.encoding is None or _is_utf8(self.encoding)):
            self.encoding = named
        if not _is_utf8(self.encoding):
            yield from self._decode(first, chunks)
            return
        yield first[len(mark) :]
        yield from chunks

    def _read_raw(self) -> Iterator[bytes]:
        check_exists(self.file.path, shown=self.file.shown)
        try:
            with self.file.path.open("rb") as raw:
                for chunk in decompress(raw, CHUNK_BYTES):
                    self._digest.update(chunk)
                    yield chunk
        except DAMAGE as error:
            raise InputError(describe_damage(error), path=self.file.shown) from error

    def _decode(self, first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(self.encoding)("strict")
        line, chunk = 1, first
        while True:
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                read = error.object[: error.start].decode(self.encoding, "ignore")
                line += read.count("\n")
                message = f"byte 0x{error.object[error.start]:02X} is not {self.encoding}"
                raise InputError(message, path=self.file.shown, line=line) from error
            except UnicodeError as error:  # no mark, where the encoding needs one
                raise InputError(str(error), path=self.file.shown) from error
            line += text.count("\n")
            yield text.encode()
            if not chunk:
                return
            chunk = next(chunks, b"")


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in {"utf-8", "utf-8-sig"}


def cut_lines(chunks: Iterable[bytes], size: int) -> Iterator[tuple[int, bytes]]:
    """Yield blocks as `cut_blocks` does, each after the 1-based number of its first line."""
    line = 1
    for block in cut_blocks(chunks, size):
        yield line, block
        line += block.count(b"\n")


def cut_blocks(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield blocks of whole lines, at least `size` bytes each but for the last.

    Args:
        chunks: The bytes of a file.
        size: Bytes after which a block ends with its line; a longer line makes a longer block.
    """
    pending: list[bytes] = []
    held = 0
    for chunk in chunks:
        pending.append(chunk)
        held += len(chunk)
        if held < size or b"\n" not in chunk:
            continue
        whole = b"".join(pending)
        end = whole.rfind(b"\n") + 1
        yield whole[:end]
        pending, held = [whole[end:]], len(whole) - end
    rest = b"".join(pending)
    if rest:
        yield rest


def decode_utf8(data: bytes, *, shown: str, first_line: int = 1, encoding: str | None = None) -> str:
    """Decode UTF-8.

    Raises:
        InputError: A byte is not UTF-8; with its line.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise InputError(describe_byte(data[error.start], encoding), path=shown, line=line) from error


def describe_byte(byte: int, encoding: str | None = None) -> str:
    """Say that a byte is not UTF-8, and what to do about it."""
    asked = " as --encoding says" if encoding else "; name the encoding, such as --encoding cp1252"
    return f"byte 0x{byte:02X} is not UTF-8{asked}"


def read_source(file: Input) -> Source:
    """Read a text file whole, gzip and zstd by their first bytes.

    Raises:
        InputError: The file is missing or unreadable, its compression is cut or broken, or a byte
            is not of its encoding (with the line and the byte).
    """
    stream = ByteStream(file)
    data = b"".join(stream)
    text = decode_utf8(data, shown=file.shown, encoding=file.reading.encoding)
    return Source(file.path, file.shown, text, stream.sha256, file.reading)


def read_head(file: Input) -> bytes:
    """Read the beginning of a file to see what it is; what cannot be decoded gives no bytes.

    Raises:
        InputError: The file is missing or unreadable.
    """
    check_exists(file.path, shown=file.shown)
    head = b""
    try:
        for chunk in ByteStream(file):
            head += chunk
            if len(head) >= HEAD_BYTES:
                break
    except InputError:
        if not file.path.is_file():
            raise
    return head[:HEAD_BYTES]


def find_place(text: str, offset: int) -> tuple[int, int]:
    """Return the 1-based line and column of a character offset."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def find_lines(text: str, offsets: Iterable[int]) -> list[int]:
    """Return the 1-based line of each of some ascending character offsets."""
    line, passed = 1, 0
    lines: list[int] = []
    for offset in offsets:
        line += text.count("\n", passed, offset)
        lines.append(line)
        passed = offset
    return lines


def plain_suffix(path: Path) -> str:
    """Return the lower-case suffix of a file, `.gz` and `.zst` not counted."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def check_exists(path: Path, *, shown: str) -> None:
    """Raise an InputError that names the files nearest to a missing one."""
    if path.exists():
        return
    if not path.parent.is_dir():
        raise InputError(f"no such file; the folder {path.parent} does not exist", path=shown)
    close = nearest_names(path.name, [entry.name for entry in path.parent.iterdir()])
    hint = f"; did you mean {list_names(str(path.parent / name) for name in close)}?" if close else ""
    raise InputError(f"no such file{hint}", path=shown)
