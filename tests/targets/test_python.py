"""Functions of users as targets."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from assay.chat.traffic import Traffic
from assay.config import RunConfig
from assay.contracts.json_text import dump_json, parse_json
from assay.errors import CallError, ConfigError
from assay.targets.contract import Ask
from assay.targets.python import MOST_STUCK, build_python

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from assay.contracts.chat import ChatReply
    from assay.targets.python import PythonAnswerer

    Load = Callable[..., PythonAnswerer]

MARKED = "marked-secret-0123456789"
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "first"},
    {"role": "assistant", "content": "one"},
    {"role": "user", "content": [{"type": "text", "text": "second"}]},
]
ROW = {
    "item_id": "i",
    "turn": 1,
    "query": "second",
    "context": "sky",
    "item_json": '{"id": 7, "a": {"b": 1.5}}',
}
ASK = Ask(tuple(MESSAGES), ROW, trial=2)


@pytest.fixture
async def load(tmp_path: Path) -> AsyncIterator[Load]:
    """Load a function `f` from source."""
    opened: list[PythonAnswerer] = []

    def build(source: str, name: str = "f", **settings: Any) -> PythonAnswerer:
        path = tmp_path / "agent.py"
        path.write_text(source, encoding="utf-8")
        target = {"kind": "python", "place": f"{path}:{name}"}
        config = RunConfig.model_validate({"datasets": ("x",), "target": target, **settings})
        opened.append(build_python(config, Traffic(config, sleep=refuse_to_wait)))
        return opened[-1]

    yield build
    for answerer in opened:
        await answerer.aclose()


async def refuse_to_wait(seconds: float) -> None:
    raise AssertionError(f"waited {seconds} s to ask again")


async def fail(answering: Awaitable[ChatReply]) -> CallError:
    with pytest.raises(CallError) as caught:
        await answering
    return caught.value


@pytest.mark.parametrize(
    ("parameters", "given"),
    [
        ("query", {"query": "second"}),
        ("question", {"question": "second"}),
        ("question, /, temperature=0", {"question": "second"}),
        ("query, /, *, item", {"query": "second", "item": {"id": 7, "a": {"b": 1.5}}}),
        ("messages", {"messages": MESSAGES}),
        ("context, turn, trial", {"context": "sky", "turn": 1, "trial": 2}),
        ("*, system, model='m'", {"system": "be brief"}),
    ],
)
async def test_parameters_get_what_they_are_named_after(load: Load, parameters: str, given: Any) -> None:
    source = f"import json\ndef f({parameters}):\n    got = locals()\n    "
    answerer = load(f"{source}return json.dumps({{k: got[k] for k in {list(given)}}})")
    assert json.loads((await answerer.answer(ASK)).text) == given
    assert list(json.loads(answerer.describe(ASK))["arguments"].values()) == list(given.values())


async def test_keyword_arguments_get_all_that_is_offered(load: Load) -> None:
    names = ["query", "messages", "item", "context", "turn", "trial", "system"]
    assert (await load("def f(**given): return ','.join(given)").answer(ASK)).text == ",".join(names)
    rest = load("def f(ask, **given): return f'{ask} ' + ','.join(given)")
    assert (await rest.answer(ASK)).text == f"second {','.join(names[1:])}"


@pytest.mark.parametrize(
    "source",
    [
        "async def f(query): return query + '!'",
        "import functools\nasync def g(mark, query): return query + mark\nf = functools.partial(g, '!')",
        "class F:\n    async def __call__(self, query): return query + '!'\nf = F()",
        "async def g(query): return query + '!'\ndef f(query): return g(query)",
        "f = lambda query: query + '!'",
    ],
)
async def test_functions_of_every_kind_answer(load: Load, source: str) -> None:
    assert (await load(source).answer(ASK)).text == "second!"


async def test_methods_and_functions_of_modules_are_found(load: Load) -> None:
    source = "class A:\n    def run(self, query): return 'ran ' + query\nagent = A()"
    assert (await load(source, "agent.run").answer(ASK)).text == "ran second"
    config = RunConfig.model_validate(
        {"datasets": ("x",), "target": {"kind": "python", "place": "html:escape"}}
    )
    answerer = build_python(config, Traffic(config))
    assert (await answerer.answer(ASK)).text == "second"
    await answerer.aclose()


FULL = """{"output_text": "hi", "model": "m-1", "cost_usd": 0.25, "finish_reason": "stop",
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\\"a\\":1}"}}],
    "retrieval": [{"queries": ["q"]}],
    "usage": {"prompt_tokens": 3, "output_tokens": 2, "cached_tokens": 1}}"""
FIELDS = "model: str; cost_usd: float; finish_reason: str; tool_calls: Any; retrieval: Any; usage: Any"
BODY = f"    {FIELDS}\n    output_text: str\ndef f(query): return R(**{FULL})"
SHAPES = {
    "dict": f"def f(query): return {FULL}",
    "model": f"from typing import Any\nfrom pydantic import BaseModel\nclass R(BaseModel):\n{BODY}",
    "dataclass": f"from typing import Any\nfrom dataclasses import dataclass\n@dataclass\nclass R:\n{BODY}",
}


@pytest.mark.parametrize("shape", list(SHAPES))
async def test_answers_of_every_shape_fill_the_whole_reply(load: Load, shape: str) -> None:
    reply = await load(SHAPES[shape]).answer(ASK)
    assert (reply.text, reply.model, reply.finish_reason) == ("hi", "m-1", "stop")
    call = '[{"type":"tool_call","tool_call_id":"c","name":"f","arguments":{"a":1}}]'
    assert (reply.tool_calls_json, reply.retrieval_json) == (call, '[{"queries":["q"]}]')
    usage = reply.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd) == (3, 2, 1, 0.25)
    assert reply.latency_ms > 0
    assert reply.attempts == 1


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ('{"response": "a", "text": "b"}', "a"),
        ('{"text": "b"}', "b"),
        ('{"output": {"content": 1}}', '{"content":1}'),
        ('{"output_text": None, "answer": "c"}', "c"),
        ('{"output_items": [{"role": "assistant", "content": "from items"}]}', "from items"),
        ('{"choices": [{"message": {"content": "d"}}], "output_text": "e"}', "e"),
        ('"half \\ud83d"', "half \ufffd"),
    ],
)
async def test_the_first_text_of_an_answer_counts(load: Load, returned: str, text: str) -> None:
    assert (await load(f"def f(query): return {returned}").answer(ASK)).text == text


async def test_citations_stand_with_the_message_of_the_assistant(load: Load) -> None:
    reply = await load('def f(query): return {"text": "hi", "citations": [{"url": "u"}]}').answer(ASK)
    content = [{"type": "text", "text": "hi"}]
    assert reply.output_items_json == dump_json(
        [{"role": "assistant", "content": content, "citations": [{"url": "u"}]}]
    )


@pytest.mark.parametrize(
    ("returned", "code", "part"),
    [
        ("None", "empty", "returned None"),
        ("''", "empty", "said nothing"),
        ("{'text': ''}", "empty", "said nothing"),
        ("{'error': 'quota gone', 'text': 'x'}", "error_body", "quota gone"),
        ("{'error': {'message': 'no index'}}", "error_body", "no index"),
        ("{}", "no_output", "output_text, response, answer, text, output): {}"),
        ("42", "unparseable", "returned int; accepted are a text, a dict"),
        ("['a']", "unparseable", "returned list"),
        ("{'text': 'a', 'retrieval': 'b'}", "unparseable", "retrieval is no list"),
        ("{'text': 'a', 'tool_calls': 5}", "unparseable", "tool_calls is a number"),
        ("{'text': 'a', 'output_items': ['b']}", "unparseable", "output_items[0]"),
        ("{'text': object()}", "unparseable", "not JSON"),
        ("{'text': float('nan')}", "unparseable", "not JSON"),
        ("1 / 0", "target_error", "ZeroDivisionError: division by zero (agent.py:1)"),
        ("next(iter(()))", "target_error", "StopIteration (agent.py:1)"),
        ("exit(3)", "target_error", "SystemExit: 3 (agent.py:1)"),
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_bad_answers_are_errors_of_their_row(
    load: Load, kind: str, returned: str, code: str, part: str
) -> None:
    if kind == "async def" and "next" in returned:
        part = "coroutine raised StopIteration"
    error = await fail(load(f"{kind} f(query): return {returned}").answer(ASK))
    assert (error.code, error.attempts) == (code, 1)
    assert part in error.message


async def test_an_error_that_was_paid_for_counts(load: Load) -> None:
    error = await fail(load("def f(query): return {'error': 'late', 'cost_usd': 0.5}").answer(ASK))
    assert error.reply is not None
    assert error.reply.usage.cost_usd == 0.5
    assert (await fail(load("def f(query): return {'error': 'late'}").answer(ASK))).reply is None


async def test_the_line_of_the_user_is_named_where_a_library_raised(load: Load) -> None:
    error = await fail(load("import json\ndef f(query):\n    return json.loads('x')").answer(ASK))
    assert error.message == "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (agent.py:3)"


async def test_cancelling_itself_fails_the_row_alone(load: Load) -> None:
    source = "import asyncio\nasync def f(query): raise asyncio.CancelledError"
    assert (await fail(load(source).answer(ASK))).message.startswith("CancelledError (agent.py:2)")


async def test_functions_that_block_run_side_by_side_in_threads_that_are_reused(load: Load) -> None:
    source = "import threading\nmet = threading.Barrier(3)\ndef f(query):\n    met.wait(5)\n    return 'ok'"
    answerer = load(source, concurrency=3)
    before = threading.active_count()
    for _ in range(2):
        replies = await asyncio.gather(*(answerer.answer(ASK) for _ in range(3)))
        assert [reply.text for reply in replies] == ["ok"] * 3
        assert threading.active_count() <= before + 3


async def test_no_more_calls_run_at_once_than_the_ceiling(load: Load) -> None:
    source = (
        "import threading, time\nbusy = threading.Lock()\ndef f(query):\n    assert busy.acquire(False)\n"
    )
    source += "    time.sleep(0.01)\n    busy.release()\n    return 'ok'"
    answerer = load(source, concurrency=1)
    await asyncio.gather(*(answerer.answer(ASK) for _ in range(5)))


@pytest.mark.parametrize(
    "source",
    [
        "import time\ndef f(query): time.sleep(0.3)",
        "import asyncio\nasync def f(query): await asyncio.sleep(9)",
    ],
)
async def test_a_late_function_is_a_timeout_that_is_not_asked_again(load: Load, source: str) -> None:
    answerer = load(source, timeout_s=0.02, concurrency=1)
    began = time.perf_counter()
    for _ in range(3):
        error = await fail(answerer.answer(ASK))
        assert (error.code, error.message, error.attempts) == ("timeout", "no answer within 0.02 s", 1)
    assert time.perf_counter() - began < 0.25


async def test_functions_that_never_return_are_not_started_for_ever(load: Load) -> None:
    source = "import threading\ndef f(query): threading.Event().wait(1)"
    answerer = load(source, timeout_s=0.01, concurrency=1)
    errors = [await fail(answerer.answer(ASK)) for _ in range(MOST_STUCK + 2)]
    assert {error.code for error in errors} == {"timeout"}
    assert "8 calls were given up and never returned" in errors[-1].message
    assert errors[MOST_STUCK - 1].message == "no answer within 0.01 s"


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\ndef f(query): raise asyncio.CancelledError",
        (
            "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\n"
            "    @property\n    def output_text(self): raise KeyError('no')\ndef f(query): return A()"
        ),
    ],
)
async def test_what_a_function_does_ends_its_row_alone(load: Load, source: str) -> None:
    assert (await fail(load(source).answer(ASK))).code == "target_error"


async def test_a_stopped_run_asks_no_function() -> None:
    config = RunConfig.model_validate(
        {"datasets": ("x",), "target": {"kind": "python", "place": "html:escape"}}
    )
    traffic = Traffic(config)
    answerer = build_python(config, traffic)
    traffic.halt.stop("budget", "spent")
    assert (await fail(answerer.answer(ASK))).code == "budget"
    assert traffic.meter.requests == 0


async def test_what_a_function_does_to_its_arguments_stays_there(load: Load) -> None:
    answerer = load("def f(messages, item):\n    messages.clear()\n    item.clear()\n    return 'ok'")
    before = answerer.describe(ASK)
    await answerer.answer(ASK)
    assert answerer.describe(ASK) == before
    assert ASK.messages == tuple(MESSAGES)


async def test_description_names_file_hash_and_arguments(load: Load) -> None:
    source = "def f(query): return query"
    answerer = load(source)
    assert parse_json(answerer.describe(ASK)) == {
        "target": "python",
        "place": answerer.function.place,
        "sha256": hashlib.sha256(f"{len(source)}:{source}".encode()).hexdigest(),
        "arguments": {"query": "second"},
    }
    assert load(source + "\n").describe(ASK) != answerer.describe(ASK)


async def test_secrets_of_the_environment_are_hidden(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_API_KEY", MARKED)
    answerer = load("import os\ndef f(query): raise ValueError(os.environ['AGENT_API_KEY'] * 20)")
    error = await fail(answerer.answer(ASK))
    assert error.message.startswith("ValueError: ***")
    leaky = Ask(({"role": "user", "content": MARKED},), ROW)
    for text in (error.message, str(error), answerer.describe(leaky), repr(answerer)):
        assert MARKED[:12] not in text
    with pytest.raises(ConfigError, match=r"ValueError: \*\*\*") as caught:
        load("import os\nraise ValueError(os.environ['AGENT_API_KEY'])")
    assert MARKED not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "name", "part"),
    [
        ("def f(a, b): ...", "f", "parameter a, b is not offered; offered are query, messages, item"),
        ("def f(query, user): ...", "f", "parameter user is not offered"),
        ("def f(*, user): ...", "f", "parameter user is not offered"),
        ("def f(): ...", "f", "takes nothing of the item"),
        ("def f(temperature=0): ...", "f", "takes nothing of the item"),
        ("def answer(query): ...", "anser", "unknown function 'anser'; did you mean answer?"),
        ("f = 5", "f", "f is int, not a function"),
        ("f = dict", "f", "its parameters cannot be told"),
        ("raise SystemExit(4)", "f", "cannot be loaded: SystemExit: 4"),
        ("import nowhere_at_all", "f", "cannot be loaded: ModuleNotFoundError"),
        ("f = 5", "", "no function is named; accepted: FILE.py:FUNCTION"),
    ],
)
def test_functions_that_cannot_be_asked_are_refused_at_once(
    load: Load, source: str, name: str, part: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(source, name)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("place", "part"),
    [
        ("nowhere.py:f", "no file nowhere.py"),
        ("nowhere_at_all:f", "nowhere_at_all: cannot be loaded"),
        ("x", "no function"),
    ],
)
def test_places_that_are_not_there_are_refused(place: str, part: str) -> None:
    config = RunConfig.model_validate({"datasets": ("x",), "target": {"kind": "python", "place": place}})
    with pytest.raises(ConfigError, match=part):
        build_python(config, Traffic(config))
