"""JSON lines in blocks: parsed strictly, wanted cells picked, every line kept as it was written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

import orjson
import polars as pl

from assay.contracts.json_text import MAX_DEPTH, JsonValue, parse_json
from assay.datasets.faults import Fault
from assay.datasets.files import ByteStream, cut_blocks, describe_byte
from assay.datasets.json_source import parse_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from assay.config import Reading
    from assay.datasets.faults import Faults

Object = dict[str, JsonValue]
BLOCK_BYTES = 4 << 20  # a block is as long as frames are worth their making
PIECE_BYTES = 128 << 10  # read and parsed at once: what fits into the cache
CHUNK_LINES = 128  # parsed objects held at once: few enough to stay in the cache
BLANKS = b" \t\r\n"
_INEXACT = (float, list, dict)  # what orjson may have respelt, numbers within included
_RESPELT = re.compile(rb"\d[.eE]|\d{17}|-0")  # numbers whose spelling a float or an integer may lose


@dataclass(slots=True)
class Block:
    """Objects of consecutive lines.

    Attributes:
        numbers: 1-based line of each object.
        texts: Each line as written, without white space around it.
        cells: Column to one value per object; columns that no object of the block has are absent.
    """

    numbers: list[int] = field(default_factory=list[int])
    texts: list[bytes] = field(default_factory=list[bytes])
    cells: dict[str, list[JsonValue]] = field(default_factory=dict[str, "list[JsonValue]"])

    @property
    def text_series(self) -> pl.Series:
        """The lines as a String column."""
        return pl.Series(self.texts, dtype=pl.Binary).cast(pl.String)


def read_blocks(stream: ByteStream, names: Mapping[str, Sequence[str]], faults: Faults) -> Iterator[Block]:
    """Read a file that holds one JSON object per line, blank lines apart.

    A repeated key, NaN, half a surrogate pair, a second value or anything but an object on a line is a
    fault, unless the reading is lenient.

    Args:
        stream: The file.
        names: Column to the keys it may stand under; the first that is not null counts.
        faults: Takes every line that is not one object; such a line is in no block.

    Yields:
        Blocks of about `BLOCK_BYTES`, in order; numbers among the cells keep their source text.
    """
    first, held, block = 1, 0, Block()
    for data in cut_blocks(stream, PIECE_BYTES):
        texts = [raw.rstrip(BLANKS) for raw in data.removesuffix(b"\n").split(b"\n")]
        numbers: Sequence[int] = range(first, first + len(texts))
        first, held = first + len(texts), held + len(data)
        if not all(texts):
            numbers = [number for number, text in zip(numbers, texts, strict=True) if text]
            texts = [text for text in texts if text]  # what was stripped from the end was the whole line
        parse_block(numbers, texts, names, faults, stream.file.reading, block)
        if held >= BLOCK_BYTES:
            yield block
            held, block = 0, Block()
    yield block


def parse_block(
    numbers: Sequence[int],
    texts: Sequence[bytes],
    names: Mapping[str, Sequence[str]],
    faults: Faults,
    reading: Reading,
    block: Block | None = None,
) -> Block:
    """Parse some lines, none of them blank; see `read_blocks`.

    Args:
        numbers: 1-based number of each line.
        texts: The lines without white space at the end.
        names: Column to the keys it may stand under.
        faults: Takes lines that are not one object.
        reading: Whether it is lenient, and which members are texts that hold JSON.
        block: Where the objects are added; None: a block of their own.
    """
    block = Block() if block is None else block
    for start in range(0, len(texts), CHUNK_LINES):
        places, chunk = numbers[start : start + CHUNK_LINES], texts[start : start + CHUNK_LINES]
        objects = None if reading.json_columns else _parse_plainly(chunk)
        if objects is None:
            objects, places, chunk = _parse_slowly(places, chunk, faults, reading)
        picked = pick_cells(objects, names)
        _restore_numbers(picked, chunk, names)
        _extend(block, places, chunk, picked)
    return block


def _parse_plainly(texts: Sequence[bytes]) -> list[Object] | None:
    r"""Parse lines fast, or return None where only the slow way can tell whether they are strict JSON.

    The parser drops all but the last of repeated keys. The source has two quotes for each key and each
    text, and one for each `\"` inside of them; so if that many are there for what was parsed, no key was
    dropped. Behind a backslash that is escaped itself the count is not certain. Lines that begin with
    white space are slow as well, so that it is stripped in one place.
    """
    try:
        objects: list[Object] = [orjson.loads(text) for text in texts]
    except ValueError:
        return None
    if set(map(type, objects)) != {dict} or {text[:1] for text in texts} != {b"{"}:
        return None
    source = b"".join(texts)
    quotes = source.count(b'"')
    if b"\\" in source:
        if b"\\\\" in source:
            return objects if _is_written_alike(objects, source) else None
        quotes -= source.count(b'\\"')
    return objects if quotes == 2 * _count_texts(objects) else None


def _count_texts(objects: Sequence[Object]) -> int:
    """Return how many keys and texts objects hold at all levels; -1 when they are nested too deep."""
    count = 0
    dicts: list[Object] = list(objects)
    lists: list[list[JsonValue]] = []
    for _ in range(MAX_DEPTH):
        members = list(chain.from_iterable(each.values() for each in dicts))
        members += chain.from_iterable(lists)
        kinds = list(map(type, members))
        count += sum(map(len, dicts)) + kinds.count(str)
        dicts = [member for member in members if isinstance(member, dict)] if dict in kinds else []
        lists = [member for member in members if isinstance(member, list)] if list in kinds else []
        if not dicts and not lists:
            return count
    return -1


def _is_written_alike(objects: list[Object], source: bytes) -> bool:
    r"""Whether writing the objects gives as many quotes as their source has.

    A repeated key that was dropped took its quotes with it. An escape `\u0022` is written back as a quote and
    could hide that; too deep a nesting cannot be written.
    """
    if b"\\u0022" in source:
        return False
    try:
        return orjson.dumps(objects).count(b'"') == source.count(b'"')
    except TypeError:
        return False


def _parse_slowly(
    numbers: Sequence[int], texts: Sequence[bytes], faults: Faults, reading: Reading
) -> tuple[list[Object], tuple[int, ...], tuple[bytes, ...]]:
    good: list[tuple[Object, int, bytes]] = []
    for number, text in zip(numbers, texts, strict=True):
        try:
            line = text.decode()
        except UnicodeDecodeError as error:
            message = describe_byte(text[error.start], reading.encoding)
            shown = text.decode("utf-8", "backslashreplace")
            faults.add_fault(Fault(number, message, code="encoding", text=shown))
            continue
        parsed = parse_line(line, number, faults, reading)
        if parsed is not None:
            value, written = parsed
            good.append((value, number, written.encode()))
    if not good:
        return [], (), ()
    values, kept, kept_texts = zip(*good, strict=True)
    return list(values), kept, kept_texts


def pick_cells(objects: Sequence[Object], names: Mapping[str, Sequence[str]]) -> dict[str, list[JsonValue]]:
    """Pick one value per object and column.

    Args:
        objects: The objects.
        names: Column to the keys it may stand under; the first that is not null counts.

    Returns:
        The columns that any object has; a missing key is null.
    """
    known = set[str]().union(*objects)
    wanted = [key for keys in names.values() for key in keys if key in known]
    found = _pick_keys(objects, wanted)
    columns: dict[str, list[JsonValue]] = {}
    for column, keys in names.items():
        for cells in (found[key] for key in keys if key in found):
            first = columns.get(column)
            columns[column] = list(cells) if first is None else list(map(_first_given, first, cells))
    return columns


def _pick_keys(objects: Sequence[Object], wanted: Sequence[str]) -> Mapping[str, Sequence[JsonValue]]:
    if not wanted:
        return {}
    try:
        rows = map(itemgetter(wanted[0], *wanted), objects)  # two keys at least, so that it gives tuples
        return dict(zip(wanted, list(zip(*rows, strict=True))[1:], strict=True))
    except KeyError:  # a key that some object lacks
        return {key: [value.get(key) for value in objects] for key in wanted}


def _first_given(first: JsonValue, second: JsonValue) -> JsonValue:
    return second if first is None else first


def _restore_numbers(
    columns: dict[str, list[JsonValue]], texts: Sequence[bytes], names: Mapping[str, Sequence[str]]
) -> None:
    """Give numbers among the cells their source text back, where it may differ."""
    doubtful: set[int] = set()
    for cells in columns.values():
        if not set(map(type, cells)).isdisjoint((*_INEXACT, int)):
            doubtful |= {row for row, cell in enumerate(cells) if isinstance(cell, _INEXACT) or cell == 0}
    for row in doubtful:
        if not _RESPELT.search(texts[row]):
            continue
        exact = parse_json(texts[row].decode())
        if isinstance(exact, dict):
            for column, (cell,) in pick_cells([exact], {name: names[name] for name in columns}).items():
                columns[column][row] = cell


def _extend(
    block: Block, numbers: Iterable[int], texts: Iterable[bytes], picked: dict[str, list[JsonValue]]
) -> None:
    before = len(block.numbers)
    block.numbers.extend(numbers)
    block.texts.extend(texts)
    added = len(block.numbers) - before
    for column in picked.keys() | block.cells.keys():
        cells = block.cells.setdefault(column, [None] * before)
        cells.extend(picked.get(column) or [None] * added)
