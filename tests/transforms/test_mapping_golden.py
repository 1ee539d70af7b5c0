from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from pydantic import ValidationError

import assay
from assay.config import RunConfig
from assay.errors import ConfigError, InputError
from transforms.mapping import FieldCheck, map_values, plain_mapping
from transforms.prompts import parse_prompt, render_prompt
from transforms.templates import parse_template

if TYPE_CHECKING:
    from collections.abc import Iterable

GOLDEN = Path(__file__).parents[1] / "golden" / "golden-mapping.jsonl"
VECTORS: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


MAPPED_AS_PROMPT = (97, 98, 99)  # input_messages, read by parse_prompt
NOT_A_MAPPING = {
    35: "a target that fails for one row: the answer of that row is an error",
    71: "an evaluator that raises for one row: its score is an error",
    86: "a required field without a mapping: checked against the plan, before any call",
    103: "patterns of an evaluator: its options",
}
CELLS = ["NA", "null", "None", "007", "1.50", "true"]
DIFFERENT: dict[int, tuple[list[Any], str]] = {
    7: ([{"x": "deep"}], "their validation refuses nested paths that it then reads (57)"),
    11: ([{"x": 1}], "indexes are part of the grammar"),
    15: ([{"x": "pre A post"}], "text around placeholders is part of the grammar"),
    16: ([{"x": "A3"}], "so are several placeholders"),
    18: ([{"x": " A"}], "white space is text"),
    20: ([{"x": 1}], "any key without marks of the grammar may stand unquoted"),
    21: ([{"x": 1}], "any key without marks of the grammar may stand unquoted"),
    24: ([{"x": "A"}], "the cloud's form holds everywhere"),
    34: ([{"x": "from data"}], "answers are bound to response alone; a name without a root is a column"),
    38: ([{"x": "in item"}], "their validation refuses nested paths that it then reads (63)"),
    42: ([{"x": cell} for cell in CELLS], "all cells of a CSV file are text"),
    44: ([{"x": "1"}], "semicolons between cells are recognised"),
    49: ([{"x": "1"}], "a byte order mark is no fault"),
    56: ([{"x": 1}, {"x": None}], "an integer stays one beside a null"),
    69: ([{"x": "1"}, "missing item.d.k"], "missing is not null"),
    70: ([{"x": "1"}, "missing item.d.k"], "missing is not null"),
    75: ([{"response": 42, "ground_truth": 42}], "a number is a value; evaluators of text read it as text"),
    76: ([{"response": ["a"], "ground_truth": "a"}], "so is a list"),
}
REFUSED = {
    48: ("key 'x' appears twice", "repeated keys are a fault of the file"),
    60: ("unknown field of sample 'resp'", "answers have fixed fields; JSON answers are output_json"),
    61: ("unknown field of sample 'o'", "answers have fixed fields; JSON answers are output_json"),
    64: ("item has no field x", "fields are not looked for at any depth: the first of several would win"),
    65: ("item has no field x", "fields are not looked for at any depth"),
    66: ("item has no field x", "fields are not looked for at any depth"),
    67: ("item has no field x", "no evaluator takes whatever there is; {{item}} is the whole row"),
    77: ("unknown field of sample 'resp'", "answers have fixed fields; JSON answers are output_json"),
    84: ("write {{item.tool_definitions}}", "the tools are those of the row"),
    102: ("unknown root response", "a placeholder says where it reads; a lone name does not"),
}
LISTED = {*MAPPED_AS_PROMPT, *NOT_A_MAPPING, *DIFFERENT, *REFUSED}


def vectors(places: Iterable[int]) -> Any:
    return [pytest.param(n, id=f"{n}: {VECTORS[n].get('note', '')[:40]}") for n in places]


def read_frame(vector: dict[str, Any], folder: Path) -> pl.DataFrame:
    """Rows of a vector, beside the answer where it has one."""
    if "file" in vector:
        path = folder / f"d.{vector['file']['ext']}"
        path.write_text(vector["file"]["text"], encoding="utf-8", newline="")
        return pl.DataFrame(assay.load(path)).select("item_json")
    sample = dict(vector.get("sample") or {})
    sample["tool_calls"] = sample.get("tool_calls") or sample.get("output_tools")
    columns = {f"sample.{name}_json": json.dumps(sample.get(name)) for name in ("output_items", "tool_calls")}
    columns["sample.output_text"] = sample.get("output_text", "an answer")
    rows = [json.dumps(row) for row in vector.get("rows") or [vector["row"]]]
    return pl.DataFrame({"item_json": rows}).with_columns(pl.lit(v).alias(k) for k, v in columns.items())


def bind(vector: dict[str, Any]) -> dict[str, str]:
    """The mapping; without one, what an evaluator's parameters take by name."""
    if vector["mapping"] is not None:
        return vector["mapping"]
    names = ["response", "ground_truth"] if vector["evaluator_signature"] == "F1ScoreEvaluator" else ["x"]
    return {name: name for name in names}


def run(place: int, folder: Path) -> list[Any]:
    """Values by field of each row, or its error message."""
    vector = VECTORS[place]
    config = RunConfig(datasets=("d",), mapping=bind(vector))
    frame = read_frame(vector, folder)
    plain = plain_mapping(frame, config.mapping)
    templates = {field: parse_template(text, where=f"mapping {field}") for field, text in plain.items()}
    check = FieldCheck(templates, has_target=bool(vector.get("target") or vector.get("sample")))
    check.look(frame)
    check.finish()
    mapped = map_values(frame, templates, templates)
    return [
        message or {field: json.loads(text) for field, text in zip(templates, texts, strict=True)}
        for *texts, _, message in mapped.rows()
    ]


def agrees(wanted: dict[str, Any], row: Any) -> bool:
    """Whether a row has the values that were recorded; NaN is how a lack was recorded."""
    if isinstance(row, str):
        return wanted.get("x") == "NaN"
    if "f1_score" in wanted:
        return (row["response"] == row["ground_truth"]) is (wanted["f1_score"] == 1.0)
    recorded = json.loads(wanted["kw"]) if "kw" in wanted else wanted
    pairs = [(recorded[field], row[field]) for field in recorded.keys() & row.keys()]
    same = [(a, type(a)) == (b, type(b)) or (a == "NaN" and b is None) for a, b in pairs]
    return bool(same) and all(same)


@pytest.mark.parametrize("place", vectors(n for n in range(len(VECTORS)) if n not in LISTED))
def test_values_and_errors_are_those_of_the_source(place: int, tmp_path: Path) -> None:
    vector = VECTORS[place]
    if not vector.get("expected"):  # an error, or a run that failed without one
        with pytest.raises((ConfigError, InputError, ValidationError)):
            run(place, tmp_path)
        return
    rows = run(place, tmp_path)
    wanted: Any = vector["expected"] if "rows" in vector or "file" in vector else [vector["expected"]]
    assert [agrees(*pair) for pair in zip(wanted, rows, strict=True)] == [True] * len(rows)


@pytest.mark.parametrize("place", vectors(DIFFERENT))
def test_a_deviation_gives_the_value_we_decided_on(place: int, tmp_path: Path) -> None:
    assert run(place, tmp_path) == DIFFERENT[place][0]


@pytest.mark.parametrize("place", vectors(REFUSED))
def test_a_refusal_says_what_is_the_matter(place: int, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, InputError), match=re.escape(REFUSED[place][0])):
        run(place, tmp_path)


def test_input_messages_are_the_messages_that_are_sent() -> None:
    wanted = [[{"role": "user", "content": "hi"}]] * 2  # text items are joined: that is the chat form
    sent: list[Any] = []
    for place in MAPPED_AS_PROMPT[:2]:
        prompt = parse_prompt(VECTORS[place]["mapping"]["input_messages"])
        rendered = render_prompt(prompt, read_frame(VECTORS[place], Path()))
        sent.append(json.loads(rendered["messages_json"][0]))
    assert sent == wanted
    with pytest.raises(ConfigError, match="no messages; accepted are"):  # a body of a hosted agent
        parse_prompt(VECTORS[99]["mapping"]["input_messages"])
