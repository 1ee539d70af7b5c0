"""Target `python`: a function of the user answers."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from dataclasses import dataclass, field, is_dataclass
from functools import reduce
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from assay.chat.answers import shorten
from assay.contracts.json_text import dump_json
from assay.errors import CallError, ConfigError, list_names
from assay.targets.code_files import load_file, load_module, read_sha
from assay.targets.contract import TargetKind
from assay.targets.local import LocalCaller
from assay.targets.offers import OFFERED, collect_offers
from assay.targets.replies import ANSWER_KEYS, dump_part, read_reply
from assay.targets.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.chat.traffic import Traffic
    from assay.config import RunConfig
    from assay.contracts.chat import ChatReply
    from assay.contracts.json_text import JsonValue
    from assay.targets.contract import Ask

MOST_STUCK = 8  # calls that were given up and have not returned, before no other is made
CEILING = 16  # calls of a function under way at one time, where the user names no number
FORMS = "accepted: FILE.py:FUNCTION or MODULE:FUNCTION"
_OFFER = f"offered are {', '.join(OFFERED)}"
RETURNS = "a text, a dict, a pydantic model or a dataclass"


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function, and what it is given.

    Attributes:
        place: Where it is, as the user named it.
        call: The function.
        positional: What it takes by position, names of `OFFERED`.
        named: What it takes by name.
        source: File that it stands in; empty when nobody knows.
        sha256: Hash of that file.
    """

    place: str
    call: Callable[..., object]
    positional: tuple[str, ...]
    named: tuple[str, ...]
    source: str = ""
    sha256: str = ""

    @property
    def is_coroutine(self) -> bool:
        """Whether calling it only makes an awaitable."""
        method = type(self.call).__call__  # of an object that is called like a function
        return inspect.iscoroutinefunction(self.call) or inspect.iscoroutinefunction(method)


@dataclass(frozen=True, slots=True)
class PythonAnswerer:
    """Calls a function: a coroutine in the event loop, any other in a thread.

    A function that is late is given up, not ended: its thread goes on until it returns.

    Attributes:
        function: The function.
        caller: How it is called.
    """

    function: UserFunction
    caller: LocalCaller = field(repr=False)
    threads: Threads[object] = field(repr=False)

    def describe(self, ask: Ask) -> str:
        """Return the arguments, with what identifies the function."""
        function = self.function
        arguments = collect_offers(ask, (*function.positional, *function.named))
        told = {"target": "python", "place": function.place, "sha256": function.sha256}
        return self.caller.site.hide_key(dump_json({**told, "arguments": arguments}))

    async def answer(self, ask: Ask) -> ChatReply:
        """Call the function."""
        return await self.caller.call(lambda: self._call(ask))

    async def aclose(self) -> None:
        """End the threads that nobody uses."""
        self.threads.close()

    async def _call(self, ask: Ask) -> ChatReply:
        offers = collect_offers(ask, (*self.function.positional, *self.function.named))
        args = [offers[name] for name in self.function.positional]
        kwargs = {name: offers[name] for name in self.function.named}
        started = perf_counter()
        returned = await self._run(args, kwargs)
        latency_ms = (perf_counter() - started) * 1000
        return read_reply(read_returned(returned), model=self.function.place, latency_ms=latency_ms)

    async def _run(self, args: list[JsonValue], kwargs: dict[str, JsonValue]) -> object:
        """Return what the function returns or its awaitable gives."""
        call = self.function.call

        def work() -> object:
            try:
                return call(*args, **kwargs)
            except (Exception, SystemExit, asyncio.CancelledError) as error:  # the function's own doing
                raise self._explain(error) from error

        returned = work() if self.function.is_coroutine else await self.threads.run(work)
        if not inspect.isawaitable(returned):
            return returned
        try:
            return await returned
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # from outside; else the function's own doing
                raise
            raise self._explain(error) from None
        except (Exception, SystemExit) as error:
            raise self._explain(error) from error

    def _explain(self, error: BaseException) -> CallError:
        """Return the failure of a row: what was raised, and the user's line that it came from."""
        lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        own = [each for each in lines if each[0] == self.function.source]
        path, line = (own or lines)[-1]
        said = shorten(self.caller.site.hide_key(str(error)))[:200]
        what = f"{type(error).__name__}: {said}" if said else type(error).__name__
        return CallError("target_error", f"{what} ({Path(path).name}:{line})")


def build_python(config: RunConfig, traffic: Traffic) -> PythonAnswerer:
    """Load the function that a configuration names.

    Raises:
        ConfigError: There is no such function, it cannot be loaded, or it needs what is not offered.
    """
    place = config.target.place or ""
    call, source = load_function(place)
    positional, named = bind_parameters(call, place)
    sha256 = config.target.place_sha256 or (read_sha([Path(source)]) if Path(source).is_file() else "")
    function = UserFunction(place, call, positional, named, source, sha256)
    threads = Threads[object](max(traffic.ceiling or CEILING, MOST_STUCK))
    return PythonAnswerer(function, LocalCaller(place, traffic, CEILING), threads)


def load_function(place: str) -> tuple[Callable[..., object], str]:
    """Return the function of `FILE.py:FUNCTION` or `MODULE:FUNCTION`, and the file it stands in.

    Raises:
        ConfigError: There is no such file, module or function, or it cannot be loaded.
    """
    where = f"--target python:{place}"
    source, _, name = place.rpartition(":")
    if not source or not name:
        raise ConfigError(f"{where}: no function is named; {FORMS}")
    if source.endswith(".py"):
        path = Path(source)
        if not path.is_file():
            raise ConfigError(f"{where}: no file {path}; {FORMS}")
        module = load_file(path, where)
    else:
        module = load_module(source, where)
    try:
        found: object = reduce(getattr, name.split("."), module)
    except AttributeError:
        functions = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise ConfigError.unknown("function", name, functions, where=where) from None
    if not callable(found):
        raise ConfigError(f"{where}: {name} is {type(found).__name__}, not a function")
    return found, getattr(module, "__file__", None) or ""


def bind_parameters(call: Callable[..., object], place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a function takes by position and by name, names of `OFFERED`.

    A parameter gets what it is named after, `**kwargs` all that is left. A sole parameter without default
    of another name gets the query.

    Raises:
        ConfigError: It needs a parameter of another name, or takes nothing.
    """
    where = f"--target python:{place}"
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        raise ConfigError(f"{where}: its parameters cannot be told; wrap it in a function") from None
    kinds = {each.kind for each in parameters}
    single = [each for each in parameters if each.kind not in {each.VAR_KEYWORD, each.VAR_POSITIONAL}]
    takes_rest = inspect.Parameter.VAR_KEYWORD in kinds
    strange = _list_strange(single, where)
    if strange:
        return ("query",), OFFERED[1:] if takes_rest else ()
    placed = _list_offered(single, inspect.Parameter.POSITIONAL_ONLY)
    named = tuple(name for name in OFFERED if name not in placed)
    if not takes_rest:
        named = _list_offered(single, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if not (placed or named):
        raise ConfigError(f"{where}: it takes nothing of the item; {_OFFER}")
    return placed, named


def _list_strange(single: list[inspect.Parameter], where: str) -> list[str]:
    """Return the sole needed parameter, when it is not offered and stands first; refuse any other."""
    needed = [each for each in single if each.default is each.empty]
    strange = [each.name for each in needed if each.name not in OFFERED]
    is_sole = len(needed) == 1 and single[0] is needed[0] and needed[0].kind is not needed[0].KEYWORD_ONLY
    if strange and not is_sole:
        raise ConfigError(f"{where}: parameter {list_names(strange)} is not offered; {_OFFER}")
    return strange


def _list_offered(single: list[inspect.Parameter], *kinds: object) -> tuple[str, ...]:
    return tuple(each.name for each in single if each.name in OFFERED and each.kind in kinds)


def _read_attributes(value: object) -> dict[str, object]:
    try:
        return {key: getattr(value, key) for key in ANSWER_KEYS if hasattr(value, key)}
    except Exception as error:
        told = f"what the function returned cannot be read: {type(error).__name__}: {error}"
        raise CallError("target_error", told) from error


def read_returned(value: object) -> dict[str, JsonValue]:
    """Return what a function returned as an answer object.

    Raises:
        CallError: `empty` for None, `unparseable` for what is no answer.
    """
    if value is None:
        raise CallError("empty", "the function returned None")
    if isinstance(value, str):
        return {"output_text": value}
    if isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
        value = _read_attributes(value)
    if not isinstance(value, dict):
        raise CallError(
            "unparseable", f"the function returned {type(value).__name__}; accepted are {RETURNS}"
        )
    try:
        plain = to_jsonable_python(cast("dict[Any, Any]", value))
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        raise CallError("unparseable", f"the function returned what is not JSON: {error}") from None
    dump_part(plain)
    return cast("dict[str, JsonValue]", plain)


KIND = TargetKind("python", "calls a function of yours", build_python)
