from __future__ import annotations

import importlib.util
import os
import stat
import threading
from pathlib import Path

import orjson
import pytest

from assay.sandbox import graders, walls
from assay.sandbox.graders import Grade, run_grader

FORGED = Grade(None, "invalid_result", "the grader wrote into the pipe for its results")
FORGE = """
import os, json
def forge(text):
    for number in range(3, 20):
        try: os.write(number, text.encode() + b"\\n")
        except OSError: pass
"""


@pytest.fixture(autouse=True)
def isolated() -> None:
    if graders.find_obstacle():
        pytest.skip(f"no isolation here: {graders.find_obstacle()}")


def grade(source: str, *items: object) -> list[Grade]:
    return run_grader(
        source, [orjson.dumps({"sample": {}, "item": item}) for item in items or (0,)], timeout_s=20
    )


def tell(expression: str, *, network: bool = False) -> str:
    """Return what an expression says in the sandbox, or the error it raises."""
    source = "import os, ctypes, stat\n"
    source += f"def grade(sample, item):\n    raise ValueError(repr(({expression})))"
    (one,) = run_grader(source, [b'{"sample":{},"item":0}'], allow_network=network)
    return (one.error_message or "").removesuffix(" (line 3)").removeprefix("ValueError: ")


def test_only_devices_without_state_exist() -> None:
    assert tell("sorted(os.listdir('/dev'))") == repr(sorted([*walls.DEVICES, "shm"]))
    assert tell("open('/dev/null', 'r+b', 0).write(b'x'), open('/dev/zero', 'rb').read(2)") == repr(
        (1, b"\0\0")
    )


@pytest.mark.parametrize("device", ["/dev/loop0", "/dev/vda", "/dev/sda", "/dev/kmsg", "/dev/tty"])
def test_no_device_of_the_machine_can_be_opened(device: str) -> None:
    assert "FileNotFoundError" in tell(f"os.open({device!r}, os.O_RDWR)")


def test_no_device_can_be_made() -> None:
    assert "PermissionError" in tell("os.mknod('x', 0o600 | stat.S_IFBLK, os.makedev(7, 0))")


def test_no_pipe_outside_can_be_reached(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for network in (False, True):
            assert "FileNotFoundError" in tell(f"os.open({str(pipe)!r}, os.O_WRONLY)", network=network)
        assert os.read(reader, 9) == b""
    finally:
        os.close(reader)


def test_no_pipe_and_no_socket_lies_under_the_root() -> None:
    kinds = "[f for d, below, names in os.walk('/', followlinks=False)"
    kinds += " if not (d.startswith('/usr') and (below.clear() or True)) for f in names"
    kinds += " if stat.S_IFMT(os.lstat(os.path.join(d, f)).st_mode) not in (stat.S_IFREG, stat.S_IFLNK)]"
    assert sorted(orjson.loads(tell(kinds).replace("'", '"'))) == sorted(walls.DEVICES)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("path", ["/etc/shadow", "/etc/passwd", "/proc/self/root", "/sys", "/old", "/proc/1"])
def test_files_of_the_system_are_absent(path: str) -> None:
    assert "FileNotFoundError" in tell(f"os.stat({path!r})")
    assert "FileNotFoundError" in tell(f"os.stat({path!r})", network=True)


def test_files_of_the_user_are_absent(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("word")
    for path in (str(secret), str(Path.home() / ".bashrc"), str(Path(__file__))):
        assert "FileNotFoundError" in tell(f"open({path!r}).read()")
    assert "FileNotFoundError" in tell(f"open('../../..{secret}').read()")


@pytest.mark.parametrize(
    "call",
    [
        "mount(None, b'/', None, 32, None)",  # again, without read-only
        "mount(b'tmpfs', b'/etc', b'tmpfs', 0, None)",
        "umount2(b'/lib', 2)",
        "chroot(b'/')",
        "unshare(0x20000)",
        "pivot_root(b'/', b'/')",
    ],
)
def test_no_right_is_left_to_change_the_root(call: str) -> None:
    assert tell(f"(ctypes.CDLL(None, use_errno=True).{call}, ctypes.get_errno())") == "(-1, 1)"


@pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="numpy is not installed")
def test_installed_packages_can_be_imported() -> None:
    source = (
        "import numpy, ssl, sqlite3, zoneinfo, assay.errors\nfrom multiprocessing.pool import ThreadPool\n"
    )
    source += "def grade(sample, item):\n    with ThreadPool(2) as pool:\n"
    source += "        return sum(pool.map(numpy.sum, [[1, 2], [3]]))"
    assert grade(source) == [Grade(6.0)]


def test_an_answer_too_many_costs_one_row_and_shifts_none() -> None:
    source = FORGE + "def grade(sample, item):\n"
    source += "    if item == 1: forge(json.dumps({'row': 1, 'score': 9.0}))\n    return item"
    assert grade(source, 0, 1, 2, 3, 4) == [Grade(0.0), Grade(9.0), FORGED, Grade(3.0), Grade(4.0)]


@pytest.mark.parametrize(
    "forged", ['{"score": 9.0}', '{"row": 7, "score": 9.0}', '{"row": "1", "score": 9.0}']
)
def test_an_answer_without_the_number_of_its_row_is_no_score(forged: str) -> None:
    source = FORGE + f"def grade(sample, item):\n    if item == 1: forge({forged!r})\n    return item"
    assert grade(source, 0, 1, 2, 3) == [Grade(0.0), FORGED, Grade(2.0), Grade(3.0)]


def test_an_answer_forged_while_loading_is_no_score() -> None:
    (ready,) = grade(FORGE + "forge('{\"ready\": true}')\ndef grade(sample, item): return 1")
    (score,) = grade(FORGE + 'forge(\'{"row": 0, "score": 9.0}\')\ndef grade(sample, item): return 1')
    assert (ready.score, score.score) == (None, None)


def test_no_thread_is_left_after_a_forged_answer() -> None:
    before = threading.active_count()
    grade(FORGE + "def grade(sample, item):\n    forge('{}')", *["x" * 100_000] * 3)
    assert threading.active_count() == before
