"""The way between Polars frames and Arrow: tables handed out, files of Arrow and Parquet read in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

ArrowForm = Literal["Parquet", "Arrow IPC"]
MAX_BATCH = 8_192  # rows, whatever a file says about their size
_IPC_MAGIC = b"ARROW1"
_ACCEPTED = "accepted are texts, numbers, booleans, dates, times, binaries, and lists, structs, maps of these"


def to_arrow(frame: pl.DataFrame) -> pa.Table:
    """Return the frame as an Arrow table (text as `large_string`, no copy where the layout allows)."""
    table: pa.Table = frame.to_arrow()
    return table


def view_text(texts: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return a String column as UTF-8: where each text begins and the last one ends, and all the bytes.

    The offsets are one more than the texts and need not begin at 0; a null is an empty text.
    """
    import numpy as np

    array = cast("pa.Array[Any]", texts.rechunk().fill_null("").to_arrow())
    buffers: list[Any] = array.buffers()
    _, offsets, data = buffers
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return ends, np.frombuffer(data or b"", np.uint8)


def read_batches(
    path: Path, form: ArrowForm, *, shown: str, size: int, names: Collection[str] | None = None
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Read a file of columns in batches.

    Types stay as they are, as far as Polars has them: extension types become their storage, decimals of
    256 bits those of 128 where the values fit, dates in milliseconds dates.

    Args:
        path: The file, not compressed as a whole.
        form: What it is; Arrow IPC is the file format or the stream format.
        shown: Its name in messages.
        size: Bytes of a batch, as far as the file lets it be cut; it has a row at least.
        names: The columns that are wanted, where the file has them; None for all.

    Yields:
        Number of rows, and the frame, which has no height of its own when the file has no columns.

    Raises:
        InputError: The file is torn or something else, names a column twice, or has a type or a text
            that no frame holds.
    """
    import pyarrow as pa

    began = False
    try:
        for batch in _iterate_parquet(path, size) if form == "Parquet" else _iterate_ipc(path):
            began = True
            rows = min(max(size * batch.num_rows // max(batch.nbytes, 1), 1), MAX_BATCH)
            for start in range(0, batch.num_rows, rows):
                part = batch.slice(start, rows)
                columns = _settle(part, shown, names)
                yield part.num_rows, pl.DataFrame({name: _to_series(each) for name, each in columns.items()})
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        if not isinstance(error, pa.ArrowNotImplementedError) or began or form != "Parquet":
            raise InputError(f"cannot be read as {form}: {_first_line(error)}", path=shown) from error
        yield from _read_with_polars(path, shown, names)


def _read_with_polars(
    path: Path, shown: str, names: Collection[str] | None
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Read Parquet of types that only Polars writes, such as integers of 128 bits."""
    try:
        for frame in pl.scan_parquet(path, glob=False).collect_batches(
            chunk_size=MAX_BATCH, maintain_order=True
        ):
            yield frame.height, frame if names is None else frame.drop(set(frame.columns) - {*names})
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"cannot be read as Parquet: {_first_line(error)}", path=shown) from error


def _iterate_parquet(path: Path, size: int) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False) as file:
        meta = file.metadata
        held = sum(meta.row_group(index).total_byte_size for index in range(meta.num_row_groups))
        rows = min(max(size * meta.num_rows // max(held, 1), 1), MAX_BATCH)
        yield from file.iter_batches(batch_size=rows)  # pyright: ignore[reportUnknownMemberType] - stubs


def _iterate_ipc(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        magic = source.read(len(_IPC_MAGIC))
        source.seek(0)
        if magic != _IPC_MAGIC:
            yield from pa.ipc.open_stream(source)
            return
        file = pa.ipc.open_file(source)
        for index in range(file.num_record_batches):
            yield file.get_batch(index)


def _settle(batch: pa.RecordBatch, shown: str, names: Collection[str] | None) -> dict[str, pa.Array[Any]]:
    """Return the columns of a batch in types that Polars has."""
    settled: dict[str, pa.Array[Any]] = {}
    for name, column in zip(batch.schema.names, _list_columns(batch), strict=True):
        if names is not None and name not in names:
            continue
        if name in settled:
            raise InputError(f"column {name!r} appears twice", path=shown)
        kind = _nearest_type(column.type)
        if not _is_readable(kind):
            raise InputError(f"column {name!r} is of type {column.type}; {_ACCEPTED}", path=shown)
        try:
            column.validate(full=True)
            settled[name] = _convert(column, kind)
        except ValueError as error:
            raise InputError(f"column {name!r}: {_first_line(error)}", path=shown) from error
    return settled


def _list_columns(batch: pa.RecordBatch) -> list[pa.Array[Any]]:
    columns: list[pa.Array[Any]] = [batch.column(index) for index in range(batch.num_columns)]
    return columns


def _convert(column: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """Cast a column to the nearest type.

    What lies in a view under a null is checked by nobody and read by the cast, so where there are nulls the
    values themselves are taken.
    """
    import pyarrow as pa

    flat = pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type)
    if not _holds_views(column.type) or (flat and not column.null_count):
        return column.cast(kind)
    converted: pa.Array[Any] = pa.array(column.to_pylist(), kind)
    return converted


def _holds_views(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _holds_views(cast("pa.DictionaryType[Any, Any]", kind).value_type)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return True
    return any(_holds_views(field.type) for field in _inner_fields(kind))


def _nearest_type(kind: pa.DataType) -> pa.DataType:
    """Return the type a column is cast to; the cast refuses values that do not fit.

    Extension types become their storage, views and dictionaries what they stand for.
    """
    import pyarrow as pa

    known = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return kind if isinstance(kind, pa.UuidType) else _nearest_type(kind.storage_type)
    if known.is_dictionary(kind):
        return _nearest_type(cast("pa.DictionaryType[Any, Any]", kind).value_type)
    if known.is_decimal256(kind):
        return pa.decimal128(38, kind.scale)
    if known.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    for is_kind, nearest in (
        (known.is_string_view, pa.large_string()),
        (known.is_binary_view, pa.large_binary()),
        (known.is_date64, pa.date32()),
    ):
        if is_kind(kind):
            return nearest
    return _nearest_nested(kind)


def _nearest_nested(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    known = pa.types
    inner = [field.with_type(_nearest_type(field.type)) for field in _inner_fields(kind)]
    if known.is_struct(kind):
        return pa.struct(inner)
    if known.is_map(kind):
        entry = _inner_fields(inner[0].type)
        return pa.map_(entry[0].type, entry[1].type)
    if known.is_list(kind):
        return pa.list_(inner[0])
    if known.is_large_list(kind):
        return pa.large_list(inner[0])
    if known.is_fixed_size_list(kind):
        size: int = kind.list_size
        return pa.list_(inner[0], size)
    return kind


def _is_readable(kind: pa.DataType) -> bool:
    import pyarrow as pa

    known = pa.types
    if isinstance(kind, pa.UuidType):
        return True
    if known.is_decimal(kind):
        return not known.is_decimal256(kind) and cast("pa.Decimal128Type[Any, Any]", kind).scale >= 0
    lists = (known.is_list, known.is_large_list, known.is_fixed_size_list)
    if any(is_kind(kind) for is_kind in (known.is_struct, known.is_map, *lists)):
        return all(map(_is_readable_field, _inner_fields(kind)))
    plain = known.is_primitive(kind) and not known.is_interval(kind)
    texts = (known.is_string, known.is_large_string)
    binaries = (known.is_binary, known.is_large_binary, known.is_fixed_size_binary)
    return plain or known.is_null(kind) or any(is_kind(kind) for is_kind in (*texts, *binaries))


def _is_readable_field(field: pa.Field[Any]) -> bool:
    """Whether Polars can take a field; a NUL would end its name, other bytes than text stop the program."""
    for key, value in (field.metadata or {}).items():
        (key + value).decode()
    return "\0" not in field.name and _is_readable(field.type)


def _inner_fields(kind: pa.DataType) -> list[pa.Field[Any]]:
    inner = range(kind.num_fields)
    fields: list[pa.Field[Any]]
    fields = [kind.field(index) for index in inner]  # pyright: ignore[reportUnknownMemberType] - stubs
    return fields


def _to_series(column: pa.Array[Any]) -> pl.Series:
    import pyarrow as pa

    if not isinstance(column.type, pa.UuidType):
        return pl.Series(column)
    digits = pl.Series(column.cast(pa.binary(16))).bin.encode("hex")
    cuts = ((0, 8), (8, 4), (12, 4), (16, 4), (20, 12))
    return pl.select(pl.concat_str([digits.str.slice(*cut) for cut in cuts], separator="-")).to_series()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].removeprefix("Invalid: ")
