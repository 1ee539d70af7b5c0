"""Programs of users as targets."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.chat.traffic import Traffic
from assay.config import RunConfig
from assay.errors import CallError, ConfigError
from assay.targets.cmd import build_cmd
from assay.targets.contract import Ask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from assay.contracts.chat import ChatReply
    from assay.targets.cmd import CommandAnswerer

    Write = Callable[..., CommandAnswerer]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and process groups")
MARKED = "marked-secret-0123456789"
MESSAGES = ({"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"})
ROW = {"item_id": "i", "turn": 1, "query": "hello", "context": None, "item_json": '{"id": 7}'}
ASK = Ask(MESSAGES, ROW, trial=2)
SENT = {
    "query": "hello",
    "messages": list(MESSAGES),
    "item": {"id": 7},
    "context": None,
    "turn": 1,
    "trial": 2,
}


def open_command(command: str, **settings: Any) -> CommandAnswerer:
    target = {"kind": "cmd", "place": command}
    config = RunConfig.model_validate({"datasets": ("x",), "target": target, **settings})
    return build_cmd(config, Traffic(config, sleep=refuse_to_wait))


async def refuse_to_wait(seconds: float) -> None:
    raise AssertionError(f"waited {seconds} s to ask again")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a shell script, and open it as a target."""

    def build(script: str, **settings: Any) -> CommandAnswerer:
        path = tmp_path / "agent"
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        return open_command(str(path), **settings)

    return build


async def fail(answering: Awaitable[ChatReply]) -> CallError:
    with pytest.raises(CallError) as caught:
        await answering
    return caught.value


async def wait_until(claim: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if claim():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came")


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def test_a_program_gets_the_turn_as_one_json_object(write: Write) -> None:
    answerer = write("""IFS= read -r line; printf '{"text": {"in": %s}}' "$line" """)
    assert json.loads((await answerer.answer(ASK)).text) == {"in": SENT}


async def test_a_program_of_several_words_is_no_shell_command() -> None:
    code = "import sys, json; print(json.load(sys.stdin)[sys.argv[1]], sys.argv[2:])"
    answerer = open_command(f"{sys.executable} -c '{code}' query '$HOME' '*' ';'")
    assert (await answerer.answer(ASK)).text == "hello ['$HOME', '*', ';']"


async def test_json_output_fills_the_whole_reply(write: Write) -> None:
    told: dict[str, Any] = {
        "response": "hi",
        "model": "m-1",
        "cost_usd": 0.5,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    told["retrieval_executions"] = [{"queries": ["q"]}]
    reply = await write(f"echo '{json.dumps(told)}'").answer(ASK)
    assert (reply.text, reply.model, reply.retrieval_json) == ("hi", "m-1", '[{"queries":["q"]}]')
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost_usd) == (3, 2, 0.5)
    assert reply.latency_ms > 0


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo hello; echo", "hello"),
        ("printf '  indented\\n  more'", "  indented\n  more"),
        ("echo '[1, 2]'", "[1, 2]"),
        ("echo '{not json'", "{not json"),
        ('printf \'\\357\\273\\277{"text": "marked"}\'', "marked"),
        ("exec 0<&-; echo unread", "unread"),
    ],
)
async def test_other_output_is_the_text(write: Write, script: str, text: str) -> None:
    assert (await write(script).answer(ASK)).text == text


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("exit 3", "target_error", "exit code 3"),
        ("echo ok; echo one >&2; echo two >&2; exit 3", "target_error", "exit code 3: one two"),
        ("kill -9 $$", "target_error", "ended by SIGKILL"),
        ("kill -40 $$", "target_error", "ended by signal 40"),
        ("echo warned >&2; echo; echo", "empty", "the program wrote nothing"),
        ('echo \'{"error": "no index"}\'', "error_body", "the target answered an error: no index"),
        ("printf 'caf\\351'", "unparseable", "the program wrote what is not UTF-8: 'utf-8' codec"),
        ("echo '{\"other\": 1}'", "no_output", "no text in the answer (accepted are output_text"),
    ],
)
async def test_bad_endings_are_errors_of_their_row(
    write: Write, script: str, code: str, message: str
) -> None:
    error = await fail(write(script).answer(ASK))
    assert (error.code, error.attempts) == (code, 1)
    assert error.message.startswith(message)


async def test_the_end_of_a_long_complaint_is_kept(write: Write) -> None:
    error = await fail(write("seq 100000 >&2; exit 1").answer(ASK))
    assert error.message.startswith("exit code 1: …")
    assert error.message.endswith(" 99999 100000")
    assert len(error.message) == 300


async def test_a_late_program_ends_with_all_that_it_started(write: Write, tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/pid; wait"
    error = await fail(write(script, timeout_s=0.15).answer(ASK))
    assert (error.code, error.message, error.attempts) == ("timeout", "no answer within 0.15 s", 1)
    pids = [int((tmp_path / name).read_text(encoding="utf-8")) for name in ("pid", "child")]
    await wait_until(lambda: not any(is_running(pid) for pid in pids))
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)  # nothing is left of it, not even a zombie


async def test_a_cancelled_call_ends_its_program(write: Write, tmp_path: Path) -> None:
    answering = asyncio.ensure_future(write(f"echo $$ > {tmp_path}/pid; sleep 60").answer(ASK))
    pid = tmp_path / "pid"
    await wait_until(lambda: pid.is_file() and bool(pid.read_text(encoding="utf-8")))
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text(encoding="utf-8")), 0)


async def test_what_a_program_leaves_behind_does_not_hold_its_answer_up(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.targets.cmd.GRACE_S", 0.02)
    reply = await write(f"sleep 60 & echo $! > {tmp_path}/child; echo done").answer(ASK)
    assert reply.text == "done"
    child = int((tmp_path / "child").read_text(encoding="utf-8"))
    await wait_until(lambda: not is_running(child))


async def test_endless_output_ends_the_program(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.targets.cmd.MOST_OUTPUT", 1 << 20)
    error = await fail(write("yes", timeout_s=20).answer(ASK))
    assert (error.code, error.message) == ("unparseable", "the program wrote more than 1 MB")


async def test_as_many_programs_run_at_once_as_there_is_room_for(write: Write, tmp_path: Path) -> None:
    answerer = write(
        f"mkdir {tmp_path}/busy || exit 1; sleep 0.01; rmdir {tmp_path}/busy; echo ok", concurrency=1
    )
    replies = await asyncio.gather(*(answerer.answer(ASK) for _ in range(4)))
    assert [reply.text for reply in replies] == ["ok"] * 4


async def test_description_names_place_input_and_the_files_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "agent.py"
    path.write_text("print(1)", encoding="utf-8")
    command = f"{Path(sys.executable).name} {path}"
    one = open_command(command).describe(ASK)
    told = json.loads(one)
    assert (told["target"], told["place"], told["input"]) == ("cmd", command, SENT)
    path.write_text("print(2)", encoding="utf-8")
    assert open_command(command).describe(ASK) != one


async def test_secrets_of_the_environment_reach_the_program_and_no_message(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", MARKED)
    answerer = write('echo "$AGENT_TOKEN $AGENT_TOKEN" >&2; exit 2')
    error = await fail(answerer.answer(ASK))
    assert error.message == "exit code 2: *** ***"
    leaky = Ask(({"role": "user", "content": MARKED},), ROW)
    assert MARKED not in answerer.describe(leaky) + repr(answerer) + str(error)


async def test_a_program_that_is_gone_is_an_error_of_the_row(write: Write, tmp_path: Path) -> None:
    answerer = write("echo ok")
    (tmp_path / "agent").rename(tmp_path / "gone")
    error = await fail(answerer.answer(ASK))
    assert error.code == "target_error"
    assert error.message.startswith("cannot start /")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("nowhere-at-all --x", "nowhere-at-all is no program, neither here nor on PATH"),
        ("", "no program is named"),
        ("echo 'open", "the command line is malformed: No closing quotation"),
        (__file__, "test_cmd.py is not executable"),
    ],
)
def test_commands_that_cannot_run_are_refused_at_once(command: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_command(command)
    assert message in str(caught.value)
