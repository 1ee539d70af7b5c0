"""The call ledger: what was appended is there, whatever happens to the process or the disk."""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import NonFiniteError
from assay.errors import ContractError, StoreError
from assay.store.layout import RunFolder, Store
from assay.store.ledger import has_calls, open_segment, read_calls
from assay.store.lines import parse_line, write_line

if TYPE_CHECKING:
    from collections.abc import Iterator

RUN_ID = "20261130-154500-3f9a2c"
HELD = rf"^run {RUN_ID} is being worked on by another process; wait for it, or end it$"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    SCALARS | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8
)

# Both take the store's folder and work on segment 0 of the run; the second holds it until its input ends.
APPENDING = f"""
import sys
from pathlib import Path
from assay.store.layout import RunFolder, Store
from assay.store.ledger import open_segment
segment = open_segment(RunFolder(Store(Path(sys.argv[1])), "{RUN_ID}"), 0)
for k in range(1_000_000):
    key = f"{{k:064x}}"
    segment.append(key, {{"text": "ü" * (k % 300)}})
    print(key, flush=True)
"""
HOLDING = f"""
import sys
from pathlib import Path
from assay.store.layout import RunFolder, Store
from assay.store.ledger import open_segment
with open_segment(RunFolder(Store(Path(sys.argv[1])), "{RUN_ID}"), 0) as segment:
    segment.append("0" * 64, {{}})
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(store: Store) -> RunFolder:
    return RunFolder(store, RUN_ID)


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let no file of this process grow beyond 4 KiB, as a full disk or a quota would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _key(name: object) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()


def _append(folder: RunFolder, index: int, *names: object) -> Path:
    with open_segment(folder, index) as segment:
        for name in names:
            segment.append(_key(name), {"n": str(name)})
    return folder.segment(index)


def _names(folder: RunFolder) -> list[Any]:
    return [payload["n"] for _, payload in read_calls(folder)]


def _start(code: str, folder: RunFolder) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(folder.store.root)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_an_answer_is_found_at_once_and_after_opening_again(folder: RunFolder) -> None:
    with open_segment(folder, 17) as segment:
        segment.append(_key(1), {"text": "a", "usage": {"input_tokens": 3}})
        assert segment.find(_key(1)) == {"text": "a", "usage": {"input_tokens": 3}}
        assert segment.find(_key(2)) is None
    with open_segment(folder, 17) as segment:
        assert segment.find(_key(1)) == {"text": "a", "usage": {"input_tokens": 3}}
    assert [path.name for path in folder.calls.iterdir()] == ["part-00017.jsonl"]


def test_a_line_begins_with_its_key(folder: RunFolder) -> None:
    path = _append(folder, 0, 1)
    assert path.read_text() == f'{{"key":"{_key(1)}","n":"1"}}\n'
    assert write_line(_key(1), {}) == f'{{"key":"{_key(1)}"}}\n'.encode()


def test_of_one_key_the_last_answer_wins(folder: RunFolder) -> None:
    with open_segment(folder, 0) as segment:
        segment.append(_key(1), {"text": "first"})
        segment.append(_key(1), {"text": "second"})
        assert segment.find(_key(1)) == {"text": "second"}
    with open_segment(folder, 0) as segment:
        assert segment.find(_key(1)) == {"text": "second"}


def test_a_batch_without_calls_leaves_no_file(folder: RunFolder) -> None:
    with open_segment(folder, 0) as segment:
        assert segment.find(_key(1)) is None
    assert not folder.path.exists()
    assert not has_calls(folder)
    assert list(read_calls(folder)) == []


def test_a_run_with_one_answer_has_calls(folder: RunFolder) -> None:
    folder.calls.mkdir(parents=True)
    folder.segment(0).touch()
    assert not has_calls(folder)
    _append(folder, 3, 1)
    assert has_calls(folder)


def test_calls_are_read_segment_by_segment_and_strangers_are_left_out(folder: RunFolder) -> None:
    for index in (100_000, 2, 10):
        _append(folder, index, f"{index}a", f"{index}b")
    (folder.calls / "part-000003.jsonl").write_bytes(write_line(_key(1), {"n": 1}))
    (folder.calls / "index.bin").touch()
    assert _names(folder) == ["2a", "2b", "10a", "10b", "100000a", "100000b"]


def test_a_last_line_torn_at_any_byte_is_lost_alone(folder: RunFolder) -> None:
    path = _append(folder, 0, "one", "two")
    kept = path.stat().st_size
    whole = _append(folder, 0, "torn").read_bytes()
    for end in range(kept, len(whole)):
        path.write_bytes(whole[:end])
        assert _names(folder) == ["one", "two"]
        with open_segment(folder, 0) as segment:
            assert segment.find(_key("one")) == {"n": "one"}
            assert segment.find(_key("torn")) is None
            segment.append(_key("next"), {"n": "next"})
            assert segment.find(_key("next")) == {"n": "next"}
        assert _names(folder) == ["one", "two", "next"]


@pytest.mark.parametrize(
    "damage",
    [
        b"\0" * 90,
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"a":1}',
        b'{"key":"' + b"0" * 64 + b'","a":NaN}',
        b'{"key":"' + b"0" * 64 + b'","a":"\xff"}',
        b'{"key":"' + b"0" * 64 + b'","a":' + b"[" * 9999 + b"]" * 9999 + b"}",
        b'{"key":"' + b"0" * 63 + b'"}',
        b'{"key":"' + b"0" * 64 + b'","a"}',
        b'{"key":"' + b"0" * 64 + b'","key":"' + b"1" * 64 + b'"}',
    ],
)
def test_a_damaged_line_is_skipped(folder: RunFolder, damage: bytes) -> None:
    path = _append(folder, 0, "one")
    path.write_bytes(path.read_bytes() + damage + b"\n")
    _append(folder, 0, "two")
    assert _names(folder) == ["one", "two"]
    with open_segment(folder, 0) as segment:
        assert segment.find("0" * 64) is None
        assert segment.find(_key("two")) == {"n": "two"}


def test_an_answer_outlives_damage_to_a_later_one_of_its_key(folder: RunFolder) -> None:
    path = _append(folder, 0, "one")
    path.write_bytes(path.read_bytes() + write_line(_key("one"), {"n": "x"}).replace(b'"x"', b"'x'"))
    with open_segment(folder, 0) as segment:
        assert segment.find(_key("one")) == {"n": "one"}


def test_damage_done_while_a_segment_is_open_is_no_answer(folder: RunFolder) -> None:
    path = _append(folder, 0, "one")
    with open_segment(folder, 0) as segment:
        path.write_bytes(path.read_bytes().replace(b"one", b'"""'))
        assert segment.find(_key("one")) is None


@given(st.dictionaries(TEXTS.filter(lambda name: name != "key"), VALUES, max_size=5))
def test_every_payload_comes_back_as_it_was(payload: dict[str, Any]) -> None:
    line = write_line(_key(1), payload)
    assert line.count(b"\n") == 1
    back = parse_line(line)
    assert back is not None
    assert back == (_key(1), payload)
    assert json.dumps(back[1]) == json.dumps(payload)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("\ud83d", "\ufffd"),
        ("a\udc00\n\u2028\x00\x85b", "a\ufffd\n\u2028\x00\x85b"),
        ("\\ud83d", "\\ud83d"),
        ("答え 👩‍👩‍👧 ß", "答え 👩‍👩‍👧 ß"),
    ],
)
def test_characters_come_back_and_half_of_one_is_replaced(folder: RunFolder, written: str, read: str) -> None:
    with open_segment(folder, 0) as segment:
        segment.append(_key(1), {written: [written]})
        assert segment.find(_key(1)) == {read: [read]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinities_are_not_written(folder: RunFolder, value: float) -> None:
    with open_segment(folder, 0) as segment:
        with pytest.raises(NonFiniteError):
            segment.append(_key(1), {"cost": [value]})
        segment.append(_key(2), {"cost": 1.1})
    assert list(read_calls(folder)) == [(_key(2), {"cost": 1.1})]


@pytest.mark.parametrize("key", ["", "0" * 63, "0" * 65, "A" * 64, "0" * 63 + "\n", "é" * 64])
def test_what_is_no_key_is_refused(folder: RunFolder, key: str) -> None:
    with open_segment(folder, 0) as segment:
        assert segment.find(key) is None
        with pytest.raises(ContractError, match="64 lower-case hex digits"):
            segment.append(key, {})


def test_a_payload_cannot_hide_the_key(folder: RunFolder) -> None:
    with open_segment(folder, 0) as segment, pytest.raises(ContractError, match="`key`"):
        segment.append(_key(1), {"key": "x"})


def test_a_closed_segment_is_closed(folder: RunFolder) -> None:
    with open_segment(folder, 0) as segment:
        segment.append(_key(1), {})
    segment.close()
    assert segment.find(_key(1)) is None
    with pytest.raises(ContractError, match="append after close"):
        segment.append(_key(2), {})


def test_another_process_keeps_a_segment_to_itself(folder: RunFolder) -> None:
    early = open_segment(folder, 0)  # before there is a file
    with _start(HOLDING, folder) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=HELD):
            open_segment(folder, 0)
        for _ in range(2):
            with pytest.raises(StoreError, match=HELD):
                early.append(_key(1), {})
        early.close()
        _append(folder, 1, "other batch")
        other.communicate("")
    assert other.returncode == 0
    _append(folder, 0, "now")
    assert [key for key, _ in read_calls(folder)] == ["0" * 64, _key("now"), _key("other batch")]


def test_a_late_first_append_keeps_what_another_wrote_before(folder: RunFolder) -> None:
    with open_segment(folder, 0) as late:
        _append(folder, 0, "early")
        late.append(_key("late"), {"n": "late"})
        assert late.find(_key("early")) == {"n": "early"}
    assert _names(folder) == ["early", "late"]


def test_kill_9_loses_nothing_that_was_appended(folder: RunFolder) -> None:
    found: set[str] = set()
    for lines in (50, 400):
        with _start(APPENDING, folder) as process:
            assert process.stdout is not None
            printed = [process.stdout.readline().strip() for _ in range(lines)]
            process.kill()
            printed += process.stdout.read().split()
        assert process.returncode == -signal.SIGKILL
        found = {key for key, _ in read_calls(folder)}
        whole = [key for key in printed if len(key) == 64]
        assert len(whole) >= lines
        assert set(whole) <= found
        with open_segment(folder, 0) as segment:
            assert segment.find(f"{3:064x}") == {"text": "üüü"}


@pytest.mark.usefixtures("small_files")
def test_a_full_disk_is_told_and_leaves_whole_lines(folder: RunFolder) -> None:
    cause = (
        rf"{folder.segment(0)}: cannot be written: File too large; lift the limit on file sizes, "
        rf"then `assay run --resume {RUN_ID}` goes on without asking again what was answered$"
    )
    with open_segment(folder, 0) as segment:
        for k in range(3):
            segment.append(_key(k), {"n": k, "text": "x" * 1000})
        for k in (3, 4):
            with pytest.raises(StoreError, match=cause):
                segment.append(_key(k), {"n": k, "text": "x" * 1000})
        assert segment.find(_key(2)) == {"n": 2, "text": "x" * 1000}
        assert segment.find(_key(3)) is None
        assert folder.segment(0).read_bytes().endswith(b'x"}\n')
    assert _names(folder) == [0, 1, 2]
    with open_segment(folder, 0) as segment:
        segment.append(_key(5), {"n": 5})
    assert _names(folder) == [0, 1, 2, 5]


def test_a_folder_that_cannot_be_made_is_named(folder: RunFolder) -> None:
    folder.path.mkdir(parents=True)
    folder.calls.touch()
    with pytest.raises(StoreError, match=r"part-00000\.jsonl: cannot be written: .*make the file writable"):
        _append(folder, 0, 1)
    with pytest.raises(StoreError, match=r"calls: cannot be read: "):
        has_calls(folder)
    with pytest.raises(StoreError, match=r"calls: cannot be read: "):
        list(read_calls(folder))


def test_a_file_that_cannot_be_opened_is_named(folder: RunFolder) -> None:
    folder.segment(0).mkdir(parents=True)
    with pytest.raises(StoreError, match=r"part-00000\.jsonl: cannot be written: Is a directory"):
        open_segment(folder, 0)


def test_descriptors_are_given_back(folder: RunFolder) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    for index in range(20):
        _append(folder, index, 1)
        with open_segment(folder, index) as held:
            with pytest.raises(StoreError):
                open_segment(folder, index)
            held.append(_key(2), {})
    assert len(list(Path("/dev/fd").iterdir())) == before
