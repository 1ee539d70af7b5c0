"""Parts of dataset files as they are written: some records of a file, some elements of a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.contracts.json_text import walk_json
from assay.datasets.files import ByteStream, cut_lines
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.datasets.files import Input

BLOCK_BYTES = 1 << 20


def cut_document(text: str, fields: Sequence[str], chosen: Sequence[int]) -> str:
    """Return a JSON document with only some elements of its lists; all else stays as it is written.

    Args:
        text: A list, or an object that holds lists.
        fields: Names of the lists in an object; the others are cut only where the first is missing.
        chosen: Indexes of the elements that stay, ascending.
    """
    begins = {key: begin for key, begin, _ in walk_json(text) if key in fields and text[begin] == "["}
    if text.lstrip().startswith("["):
        begins = {fields[0]: 0}
    elif fields[0] in begins:
        begins = {fields[0]: begins[fields[0]]}
    for begin in sorted(begins.values(), reverse=True):  # from the end, so that places stay true
        spans = [(start, end) for _, start, end in walk_json(text, begin)]
        if spans:
            between = text[spans[0][1] : spans[1][0]] if len(spans) > 1 else ""
            elements = between.join(text[slice(*spans[index])] for index in chosen)
            text = text[: spans[0][0]] + elements + text[spans[-1][1] :]
    return text


def copy_records(file: Input, lines: Sequence[int], *, quoted: bool) -> Iterator[bytes]:
    """Yield the records that begin at some lines, as they are written, each with a line end.

    Args:
        file: The file.
        lines: 1-based numbers, ascending; 0 before them means the first line that is not blank.
        quoted: Whether a record goes on until its quotes are closed, as in CSV.

    Raises:
        InputError: The file is shorter than it was.
    """
    wanted = list(reversed(lines))
    record = b""
    for first, data in cut_lines(ByteStream(file), BLOCK_BYTES):
        for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), start=first):
            if not record:
                if not wanted:
                    return
                if number != wanted[-1] and (wanted[-1] or not line.strip()):
                    continue
                wanted.pop()
            record += line + b"\n"
            if not quoted or record.count(b'"') % 2 == 0:
                yield record
                record = b""
    if any(wanted) or record:
        raise InputError("the file has changed while it was read", path=file.shown)
