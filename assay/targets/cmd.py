"""Target `cmd`: a program answers; one process per turn, JSON in, JSON or text out."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, cast

from assay.chat.answers import SHOWN
from assay.contracts.json_text import LENIENT, dump_json
from assay.errors import CallError, ConfigError
from assay.targets.code_files import read_sha
from assay.targets.contract import TargetKind
from assay.targets.local import LocalCaller
from assay.targets.offers import OFFERED, collect_offers
from assay.targets.replies import dump_part, read_reply

if TYPE_CHECKING:
    from assay.chat.traffic import Traffic
    from assay.config import RunConfig
    from assay.contracts.chat import ChatReply
    from assay.contracts.json_text import JsonValue
    from assay.targets.contract import Ask

SENT = tuple(name for name in OFFERED if name != "system")  # it is among the messages
MOST_OUTPUT = 64 << 20  # bytes of an answer
KEPT_ERRORS = 4096  # bytes of the end of standard error
GRACE_S = 0.5  # that processes left behind may hold the pipes of a program that has ended
STDIN, STDOUT = 0, 1


@dataclass(frozen=True, slots=True)
class CommandAnswerer:
    """Runs a program.

    Attributes:
        arguments: The program, as found, and its arguments.
        sha256: Hash of the files among them.
        caller: How it is run.
    """

    arguments: tuple[str, ...]
    sha256: str
    caller: LocalCaller = field(repr=False)

    def describe(self, ask: Ask) -> str:
        """Return what goes to standard input, with what identifies the program."""
        site = self.caller.site
        told = {"target": "cmd", "place": site.place, "sha256": self.sha256}
        return site.hide_key(dump_json({**told, "input": collect_offers(ask, SENT)}))

    async def answer(self, ask: Ask) -> ChatReply:
        """Run the program once."""
        return await self.caller.call(lambda: self._run(ask))

    async def aclose(self) -> None:
        """Do nothing: a program ends with its call."""

    async def _run(self, ask: Ask) -> ChatReply:
        sent = f"{dump_json(collect_offers(ask, SENT))}\n".encode()
        started = perf_counter()
        try:
            exchange = await _exchange(self.arguments, sent)
        except OSError as error:
            raise CallError("target_error", f"cannot start {self.arguments[0]}: {error}") from None
        if exchange.code:
            raise CallError("target_error", self._explain(exchange))
        latency_ms = (perf_counter() - started) * 1000
        return read_reply(read_output(exchange.out), model=self.caller.site.place, latency_ms=latency_ms)

    def _explain(self, exchange: Exchange) -> str:
        """Say how the program ended, and what it said at last."""
        code = exchange.code or 0
        how = f"exit code {code}" if code > 0 else f"ended by {_name_signal(-code)}"
        said = " ".join(self.caller.site.hide_key(exchange.err.decode("utf-8", "replace")).split())
        room = SHOWN - len(how) - len(": …")
        return f"{how}: {said if len(said) <= room else f'…{said[-room:]}'}" if said else how


class Exchange(asyncio.SubprocessProtocol):
    """What passes between a process and us.

    Attributes:
        code: Exit code, negative for a signal; None while it runs.
        out: Standard output so far.
        err: The end of standard error.
        done: Set when everything is read, or the process has ended and others hold its pipes.
        exited: Set when the process has ended.
        is_open: Whether a pipe is open still.
        is_flooded: Whether there was more output than is taken.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self.out, self.err = bytearray(), bytearray()
        self.done, self.exited = asyncio.Event(), asyncio.Event()
        self.is_open, self.is_flooded = True, False
        self._process: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the process."""
        self._process = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """Keep what the process writes."""
        piece = data.encode() if isinstance(data, str) else data
        if fd == STDOUT and len(self.out) <= MOST_OUTPUT:
            self.out += piece
            if len(self.out) > MOST_OUTPUT:
                self.is_flooded = True
                self.done.set()
        elif fd != STDOUT:
            self.err += piece
            del self.err[:-KEPT_ERRORS]

    def process_exited(self) -> None:
        """Wait a moment more for what is in the pipes."""
        self.code = None if self._process is None else self._process.get_returncode()
        self.exited.set()
        asyncio.get_running_loop().call_later(GRACE_S, self.done.set)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as the base class has it
        """Note that the process has ended and every pipe is closed."""
        self.is_open = False
        self.done.set()


async def _exchange(arguments: tuple[str, ...], sent: bytes) -> Exchange:
    """Run a program to its end; cancelled, it ends the program and all that it started."""
    process, exchange = await _start(arguments)
    try:
        _feed(process, sent)
        await exchange.done.wait()
    finally:
        await _end(process, exchange)
    if exchange.is_flooded:
        raise CallError("unparseable", f"the program wrote more than {MOST_OUTPUT >> 20} MB")
    return exchange


async def _start(arguments: tuple[str, ...]) -> tuple[asyncio.SubprocessTransport, Exchange]:
    """Start a program; cancelled meanwhile, it is ended, as the library alone would not end its children."""
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            Exchange,
            *arguments,
            start_new_session=True,  # one signal reaches all of them, and Ctrl-C none
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await _end(*await starting)
        raise


async def _end(process: asyncio.SubprocessTransport, exchange: Exchange) -> None:
    """Close a process, and end what runs of it."""
    if exchange.is_open:
        _kill(process)
    await exchange.exited.wait()
    process.close()


def _feed(process: asyncio.SubprocessTransport, sent: bytes) -> None:
    pipe = process.get_pipe_transport(STDIN)
    if isinstance(pipe, asyncio.WriteTransport):  # what a program does not read is dropped with the pipe
        pipe.write(sent)
        pipe.write_eof()


def _kill(process: asyncio.SubprocessTransport) -> None:
    """End a process and its group."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.get_pid(), signal.SIGKILL)
    with suppress(ProcessLookupError):
        process.kill()


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # those for real-time use have no names
        return f"signal {number}"


def read_output(output: bytes | bytearray) -> dict[str, JsonValue]:
    """Return what a program wrote as an answer object: a JSON object, else its text.

    Raises:
        CallError: `empty` when there is nothing but white space, `unparseable` when it is not UTF-8.
    """
    try:
        text = output.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CallError("unparseable", f"the program wrote what is not UTF-8: {error}") from None
    if not text.strip():
        raise CallError("empty", "the program wrote nothing")
    if text.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            value: JsonValue = LENIENT.decode(text)
            if isinstance(value, dict):
                dump_part(value)
                return value
    return {"output_text": text.rstrip("\r\n")}


def build_cmd(config: RunConfig, traffic: Traffic) -> CommandAnswerer:
    """Find the program of the command line that a configuration names.

    Raises:
        ConfigError: The command line is empty or malformed, or there is no such program.
    """
    place = config.target.place or ""
    arguments = split_command(place)
    files = [Path(each) for each in arguments[1:] if _is_file(each)]
    if "/" in place.split()[0]:  # of a program of the user's own; one of the system is known by name
        files.insert(0, Path(arguments[0]))
    caller = LocalCaller(place, traffic, os.cpu_count() or 1)
    return CommandAnswerer(arguments, config.target.place_sha256 or read_sha(files), caller)


def split_command(command: str) -> tuple[str, ...]:
    """Return the program, with its path, and its arguments, quoted as in a shell; no shell is asked.

    Raises:
        ConfigError: As `build_cmd`.
    """
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"--target cmd: the command line is malformed: {error}") from None
    if not arguments:
        raise ConfigError("--target cmd: no program is named; accepted: cmd:'PROGRAM ARGUMENTS'")
    program = shutil.which(arguments[0])
    if program is None:
        fault = "is not executable" if _is_file(arguments[0]) else "is no program, neither here nor on PATH"
        raise ConfigError(f"--target cmd: {arguments[0]} {fault}")
    return program, *arguments[1:]


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # an argument that is too long for a name
        return False


KIND = TargetKind("cmd", "runs a program for every turn", build_cmd)
