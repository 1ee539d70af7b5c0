"""PythonGrader: a function `grade(sample, item)` of the user's own, as the grader python of OpenAI."""

from __future__ import annotations

import ast
import math
import symtable
import warnings
from typing import TYPE_CHECKING

import orjson
import polars as pl
from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from assay.contracts.json_text import dump_json, parse_json
from assay.errors import CallError, ConfigError
from assay.sandbox.graders import TIMEOUT_S, Grade, check_network, run_grader
from evaluators.contract import ColumnEvaluator, Options, Scale
from evaluators.json_fields import read_field

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue

FIELDS = ("item", "response", "tool_calls", "output_items")
ARGUMENTS = ("sample", "item")
MAX_SOURCE = 256_000  # bytes
MAX_TIMEOUT_S = 3600.0


class PythonGraderOptions(Options):
    """Options of PythonGrader."""

    source: str = Field(
        description="Python text below 256 kB that defines grade(sample, item), which returns a number"
    )
    image_tag: str | None = Field(
        default=None, description="taken for OpenAI's sake and not used: graders run on this Python"
    )
    timeout_s: float = Field(
        default=TIMEOUT_S, gt=0, le=MAX_TIMEOUT_S, description="seconds that one row may take"
    )
    allow_network: bool = Field(
        default=False, description="whether graders keep the network, as --allow-graders-network says"
    )

    @field_validator("source")
    @classmethod
    def _check_size(cls, source: str) -> str:
        if len(source.encode("utf-8", "replace")) >= MAX_SOURCE:
            raise PydanticCustomError("size", "a text below 256 kB")
        return source

    def check_setup(self) -> None:
        """Look whether the source can be a grader, and whether its network can be cut.

        Raises:
            ConfigError: A fault in the source, with its line, or a system without isolation.
        """
        check_source(self.source)
        check_network(allow_network=self.allow_network)


def check_source(source: str) -> None:
    """Refuse a source that is no Python or has no function `grade` of two arguments; it is not run.

    Raises:
        ConfigError: As said, with the line.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            compile(tree, "<grader>", "exec", dont_inherit=True)
            names = symtable.symtable(source, "<grader>", "exec")
    except SyntaxError as error:
        raise ConfigError(f"PythonGrader.source: line {error.lineno or 1}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"PythonGrader.source: {error or 'nested too deeply'}") from error
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == "grade":
            return _check_function(statement)
    symbol = names.lookup("grade") if "grade" in names.get_identifiers() else None
    if symbol is None or not (symbol.is_assigned() or symbol.is_imported()):
        raise ConfigError("PythonGrader.source: it defines no grade(sample, item)")
    return None


def _check_function(function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    given = function.args
    positional = len(given.posonlyargs) + len(given.args)
    required = positional - len(given.defaults)
    few = positional < len(ARGUMENTS) and given.vararg is None
    many = required > len(ARGUMENTS) or None in given.kw_defaults
    if few or many or isinstance(function, ast.AsyncFunctionDef):
        raise ConfigError(
            f"PythonGrader.source: line {function.lineno}: grade is called as grade(sample, item), "
            "a plain function"
        )


def measure_grades(options: PythonGraderOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score each row with what `grade(sample, item)` returns for it, any finite number.

    Args:
        options: The source and how it runs.
        frame: `item`, `tool_calls` and `output_items` as JSON text, `response` as text; nulls but in `item`.

    Returns:
        `score`, and `error_code` and `error_message` of rows whose grading failed; see `Grade`. OpenAI's
        grader scores these 0. True and False count as 1 and 0. A row with a field that is not JSON has
        the code `bad_field` and is not graded.

    Raises:
        ConfigError: This system cannot cut the grader off the network.
    """
    rows = [_try_row(*values) for values in frame.select(*FIELDS).iter_rows()]
    lines = [row for row in rows if isinstance(row, bytes)]
    graded = iter(
        run_grader(options.source, lines, timeout_s=options.timeout_s, allow_network=options.allow_network)
    )
    grades = [row if isinstance(row, Grade) else next(graded) for row in rows]
    table = [(grade.score, grade.error_code, grade.error_message) for grade in grades]
    schema = {"score": pl.Float64, "error_code": pl.String, "error_message": pl.String}
    return pl.DataFrame(table, schema=schema, orient="row")


def _try_row(item: str, response: str | None, calls: str | None, output: str | None) -> bytes | Grade:
    """Write a row, or say which of its fields cannot be read."""
    try:
        return write_row(item, response, calls, output)
    except CallError as error:
        return Grade(None, error.code, error.message)


def write_row(item: str, response: str | None, calls: str | None, output: str | None) -> bytes:
    """Write one line of JSON: `item`, which gets the sample as a member, and `sample`.

    The sample has `output_text` (empty without a text), `output_json` (the text where it is a JSON object or
    list), `output_tools` (calls as in chat completions), `output_items` and `choices`.

    Raises:
        CallError: `bad_field`, when a field that comes as JSON text is not JSON.
    """
    _check_json(item, "item")
    _check_json(output, "output_items")
    text = response or ""
    tools = dump_json(_list_tools(calls)) if calls else "[]"
    quoted = orjson.dumps(text).decode()
    message = f'{{"role":"assistant","content":{quoted},"tool_calls":{tools}}}'
    members = {
        "output_text": quoted,
        "output_json": _find_json(text),
        "output_tools": tools,
        "output_items": output or "null",
        "choices": f'[{{"index":0,"message":{message}}}]',
    }
    sample = ",".join(f'"{name}":{value}' for name, value in members.items())
    line = f'{{"sample":{{{sample}}},"item":{item}}}'
    return line.replace("\n", " ").replace("\r", " ").encode()  # none of them is inside a text


def _check_json(text: str | None, name: str) -> None:
    try:
        orjson.loads("null" if text is None else text)
    except ValueError:
        read_field(text, name)  # takes more than the faster reader, and says what is wrong


def _find_json(text: str) -> str:
    if text.lstrip(" \t\r\n").startswith(("{", "[")):
        try:
            parse_json(text)
        except ValueError:
            return "null"
        return text
    return "null"


def _list_tools(calls: str) -> list[JsonValue]:
    """Turn calls, canonical ones or those of chat completions, into the form of chat completions."""
    parsed = read_field(calls, "tool_calls")
    return [_write_tool(call) for call in parsed] if isinstance(parsed, list) else []


def _write_tool(call: JsonValue) -> JsonValue:
    if not isinstance(call, dict) or "function" in call:
        return call
    arguments = call.get("arguments")
    written = arguments if isinstance(arguments, str) else dump_json({} if arguments is None else arguments)
    function: JsonValue = {"name": call.get("name"), "arguments": written}
    return {"id": call.get("tool_call_id"), "type": "function", "function": function}


EVALUATOR = ColumnEvaluator(
    name="PythonGrader",
    summary="What a Python function grade(sample, item) of your own returns, run apart without network.",
    aliases=("python_grader", "python"),
    needs=("item",),
    wants=("response", "tool_calls", "output_items"),
    json_fields=("item", "tool_calls", "output_items"),
    options=PythonGraderOptions,
    scale=Scale(-math.inf, None),
    threshold=None,
    threshold_names=("threshold", "pass_threshold"),
    measure=measure_grades,
)
