from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import orjson
import pytest

from assay.errors import ConfigError
from assay.sandbox import graders
from assay.sandbox.graders import Grade, run_grader

RUNS_ON = """
from assay.sandbox.graders import run_grader
run_grader("def grade(sample, item):\\n    while True: pass", [b'{"sample":{},"item":{}}'])
"""


@pytest.fixture(autouse=True)
def walls() -> None:
    if graders.find_obstacle():
        pytest.skip(f"no isolation here: {graders.find_obstacle()}")


def grade(source: str, *items: object, timeout_s: float = 20, allow_network: bool = False) -> list[Grade]:
    rows = [orjson.dumps({"sample": {"output_text": "yes"}, "item": item}) for item in items or (0,)]
    return run_grader(source, rows, timeout_s=timeout_s, allow_network=allow_network)


def fail(body: str, *, allow_network: bool = False) -> tuple[str, str]:
    """Return code and message of a grader with this body, which has to fail."""
    source = "def grade(sample, item):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    (one,) = grade(source, allow_network=allow_network)
    assert one.score is None
    return one.error_code or "", one.error_message or ""


def list_children(parent: int) -> list[int]:
    stats = [path.read_text(errors="replace") for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    parts = [(int(text.split(" ", 1)[0]), text.rpartition(")")[2].split()) for text in stats]
    return [pid for pid, rest in parts if int(rest[1]) == parent and rest[0] != "Z"]


def wait_for(holds: object, seconds: float = 10) -> bool:
    assert callable(holds)
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(holds())


def test_rows_are_graded_in_order_by_one_process() -> None:
    source = (
        "import os\nfirst = os.getpid()\ndef grade(sample, item):\n    return item + (os.getpid() != first)"
    )
    assert grade(source, *range(2000)) == [Grade(float(n)) for n in range(2000)]


def test_rows_larger_than_a_pipe_pass() -> None:
    assert grade("def grade(sample, item):\n    return len(item)", *["x" * 300_000] * 5) == [Grade(3e5)] * 5


def test_nothing_at_all_is_graded_without_a_process() -> None:
    assert run_grader("", []) == []


def test_what_a_grader_prints_and_reads_disturbs_nothing() -> None:
    body = """
import os, sys
def grade(sample, item):
    print("{\\"score\\": 9}" * 20_000, flush=True)
    print("x", file=sys.stderr)
    os.write(1, b"{}\\n")
    os.write(2, b"{}\\n")
    return len(sys.stdin.read()) + 1
"""
    assert grade(body, 0, 0) == [Grade(1.0), Grade(1.0)]


def test_a_loop_is_ended_and_the_other_rows_are_graded() -> None:
    source = "def grade(sample, item):\n    while item == 1: pass\n    return item"
    first, second, third = grade(source, 0, 1, 2, timeout_s=0.5)
    assert (first, third) == (Grade(0.0), Grade(2.0))
    assert second == Grade(None, "grader_timeout", "the grader took more than 0.5 s")


def test_sleep_and_ignored_signals_do_not_outlast_the_limit() -> None:
    source = "import time, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    (one,) = grade(source + "def grade(sample, item):\n    time.sleep(60)", timeout_s=0.5)
    assert one.error_code == "grader_timeout"


def test_memory_is_bounded_and_the_process_survives_it() -> None:
    source = "def grade(sample, item):\n    return len('x' * (item << 30))"
    bomb, small = grade(source, 3, 0)
    assert (bomb, small) == (Grade(None, "grader_memory", "MemoryError (line 2)"), Grade(0.0))


def test_a_fork_bomb_starts_no_process() -> None:
    code, message = fail("import os\nwhile True: os.fork()")
    assert (code, message.split(":")[0]) == ("grader_error", "BlockingIOError")
    assert fail("import subprocess\nsubprocess.run(['true'])")[1].startswith("BlockingIOError")


def test_threads_run_but_not_without_end() -> None:
    source = """
import threading, time
def grade(sample, item):
    threads = [threading.Thread(target=time.sleep, args=(0.01 if item < 9 else 9,)) for _ in range(item)]
    for thread in threads: thread.start()
    return len(threads)
"""
    few, many = grade(source, 8, 3000)
    assert (few, many.error_code) == (Grade(8.0), "grader_error")


def test_a_crash_costs_its_row_alone() -> None:
    source = "import os, ctypes\ndef grade(sample, item):\n    return {0: lambda: 1, 1: lambda: os._exit(3), "
    fine, left, crashed = grade(source + "2: lambda: ctypes.string_at(0)}[item]()", 0, 1, 2)
    assert fine == Grade(1.0)
    assert left == Grade(None, "grader_crash", "the grader ended its process: exit code 3")
    assert crashed == Grade(None, "grader_crash", "the grader ended its process: SIGSEGV")


def test_a_grader_that_finds_the_pipe_forges_nothing_but_its_own_result() -> None:
    body = (
        "import os\nfor n in range(3, 20):\n    try: os.write(n, b'nonsense\\n')\n    except OSError: pass\n"
    )
    assert fail(body) == ("invalid_result", "the grader wrote into the pipe for its results")


def test_whatever_is_raised_is_the_error_of_its_row_with_its_line() -> None:
    source = """
FAULTS = [None, ValueError("bad\\ud800"), SystemExit(0), KeyboardInterrupt()]
def grade(sample, item):
    if item:
        raise FAULTS[item]
    return 1
"""
    messages = [each.error_message for each in grade(source, 1, 2, 3, 0)]
    assert messages == [
        "ValueError: bad? (line 5)",
        "SystemExit: 0 (line 5)",
        "KeyboardInterrupt (line 5)",
        None,
    ]


def test_a_source_that_cannot_be_loaded_is_the_error_of_every_row() -> None:
    both = grade("import nothing_of_that_name\ndef grade(sample, item): return 1", 0, 0)
    told = "ModuleNotFoundError: No module named 'nothing_of_that_name' (line 1)"
    assert both == [Grade(None, "grader_error", told)] * 2
    (one,) = grade("import os\nos._exit(0)\ndef grade(sample, item): return 1")
    assert one == Grade(None, "grader_crash", "the grader ended its process: exit code 0")


@pytest.mark.parametrize(
    ("value", "shown"),
    [("None", "None"), ("'1'", "'1'"), ("float('nan')", "nan"), ("10**400", None), ("[1]", "[1]")],
)
def test_what_is_no_finite_number_is_no_score(value: str, shown: str | None) -> None:
    code, message = fail(f"return {value}")
    assert code == "invalid_result"
    assert shown is None or message == f"grade returned {shown}, not a finite number"


def test_the_environment_is_empty_and_the_folder_is_its_own() -> None:
    body = "import os, tempfile\nopen('x', 'w').write('x')\n"
    body += "raise ValueError(dict(os.environ), os.listdir('.'), tempfile.gettempdir() == os.getcwd())"
    assert fail(body)[1].startswith("ValueError: ({}, ['x'], True)")


def test_nothing_can_be_written_outside_the_folder(tmp_path: Path) -> None:
    assert "FileNotFoundError" in fail(f"open({str(tmp_path / 'x')!r}, 'w')")[1]
    assert "FileNotFoundError" in fail(f"import os\nos.rmdir({str(tmp_path)!r})")[1]
    for place in ("/x", "/usr/lib/x", "/dev/x", "/etc/x", f"{sys.prefix}/lib/x", graders.__file__):
        assert "Read-only" in fail(f"open({place!r}, 'w')")[1]


def test_the_parent_cannot_be_read_or_signalled() -> None:
    assert "FileNotFoundError" in fail("import os\nopen(f'/proc/{os.getppid()}/environ').read()")[1]
    assert "PermissionError" in fail("import os\nos.kill(os.getppid(), 0)")[1]
    limits = "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_CPU)"
    assert "PermissionError" in fail(limits)[1]


def test_no_further_namespace_gives_rights_back() -> None:
    source = "import ctypes\ndef grade(sample, item):\n    return ctypes.CDLL(None).unshare(item)"
    assert grade(source, 0x10000000, 0x10020000) == [Grade(-1.0), Grade(-1.0)]


def test_a_server_on_this_machine_is_out_of_reach_unless_allowed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "s"))
        local.listen()
        connect = f"import socket\nsocket.create_connection(('127.0.0.1', {server.getsockname()[1]}))"
        assert "PermissionError" in fail(connect)[1]
        assert (
            "PermissionError" in fail(f"import socket\nsocket.socket(1).connect({str(tmp_path / 's')!r})")[1]
        )
        assert "returned None" in fail(connect, allow_network=True)[1]


def test_where_the_network_cannot_be_cut_graders_are_refused_unless_allowed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(graders, "find_obstacle", lambda: "no namespaces")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ConfigError, match=r"\(no namespaces\); --allow-graders-network"):
        grade("def grade(sample, item): return 1")
    source = f"import os\ndef grade(sample, item):\n    open('x', 'w')\n    here = {str(tmp_path)!r}\n"
    source += "    return os.getcwd().startswith(here)"
    assert grade(source, allow_network=True) == [Grade(1.0)]
    assert list(tmp_path.iterdir()) == []


def test_a_killed_parent_leaves_no_child_behind() -> None:
    with subprocess.Popen([sys.executable, "-c", RUNS_ON], cwd=Path(__file__).parents[2]) as parent:
        children: list[int] = []

        def runs() -> bool:
            children[:] = list_children(parent.pid)
            return bool(children) and b"assay.sandbox" in Path(f"/proc/{children[0]}/cmdline").read_bytes()

        assert wait_for(runs)
        time.sleep(0.5)
        child = children[0]
        os.kill(parent.pid, signal.SIGKILL)
    assert wait_for(lambda: not Path(f"/proc/{child}").exists())


def test_no_process_and_no_thread_is_left() -> None:
    before = threading.active_count()
    source = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"
    assert grade(source + "def grade(sample, item): return 1") == [Grade(1.0)]
    assert list_children(os.getpid()) == []
    assert threading.active_count() == before
