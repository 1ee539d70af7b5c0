from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from assay.errors import ConfigError
from transforms.mapping import FieldCheck, is_ambiguous, map_fields, map_values, plain_mapping
from transforms.templates import Template, parse_template

FIELD = Path(__file__).parents[1] / "golden" / "field"


def read_field(name: str) -> list[str]:
    return (FIELD / name).read_text(encoding="utf-8").splitlines()


def rows(*sources: object) -> pl.DataFrame:
    texts = [source if isinstance(source, str) else json.dumps(source) for source in sources]
    return pl.DataFrame({"item_json": texts}, schema={"item_json": pl.String})


def templates(**texts: str) -> dict[str, Template]:
    return {field: parse_template(text, where=f"mapping {field}") for field, text in texts.items()}


def values(frame: pl.DataFrame, **texts: str) -> list[str | None]:
    return map_fields(frame, templates(**texts), texts)[next(iter(texts))].to_list()


def test_inserted_text_is_never_read_again() -> None:
    braces = read_field("F031/braces.jsonl")
    mapping = templates(query="Q: {{item.query}}", response="<<item.response>>")
    mapped = map_fields(rows(*braces), mapping, mapping)
    sources = [json.loads(line) for line in braces]
    assert mapped["query"].to_list() == [f"Q: {row['query']}" for row in sources]
    assert mapped["response"].to_list() == [row["response"] for row in sources]
    assert "S3CRET" not in str(mapped.rows())
    assert mapped["error_code"].null_count() == len(braces)


def test_values_inside_text_are_compact_json_in_source_order() -> None:
    shown = ['{"b":1,"a":[true,null,"ü"]}', "3.0", "3", "", "true", "plain", "[]", "1e-7"]
    assert values(rows(*read_field("F034/values.jsonl")), query="v={{item.v}}") == [f"v={v}" for v in shown]


def test_numbers_and_escapes_inside_text_are_those_of_the_source() -> None:
    sources = ['{"v":1.10}', '{"v":92233720368547760001}', '{"v":["\\u00fc"]}', '{"v":-0.0}']
    assert values(rows(*sources), query="v={{item.v}}") == [
        "v=1.10",
        "v=92233720368547760001",
        'v=["ü"]',
        "v=-0.0",
    ]


def test_missing_empty_and_null_are_three_things() -> None:  # field case F032
    frame = rows({"a": "", "b": "x"}, {"a": None, "b": "x"}, {"b": "x"})
    mapped = map_fields(frame, templates(query="a={{item.a}} b={{item.b}}"), ["query"])
    assert mapped["query"].to_list()[:2] == ["a= b=x", "a= b=x"]
    assert mapped["error_message"].to_list() == [None, None, "missing item.a"]
    assert mapped["error_code"].to_list() == [None, None, "missing_field"]
    assert values(frame, query="{{item.a}}") == ["", None, None]


def test_a_field_without_a_template_comes_from_its_standard_column() -> None:
    frame = pl.DataFrame({"item_json": ["{}"], "query": ["q"], "sample.output_text": ["answer"]})
    mapped = map_fields(frame, {}, ["query", "response"])
    assert mapped.select("query", "response").rows() == [("q", "answer")]


def test_what_an_answer_took_and_cited_is_read_with_its_type() -> None:
    items = '[{"role":"assistant","content":[],"citations":[{"url":"u"}]}]'
    frame = pl.DataFrame(
        {
            "item_json": ["{}", "{}"],
            "sample.output_items_json": [items, "[]"],
            "sample.retrieval_json": ['[{"query":"q"}]', None],
            "sample.input_tokens": [7, None],
            "sample.output_tokens": [2, 3],
            "sample.cached_tokens": pl.Series([None, None], dtype=pl.Int64),
            "sample.reasoning_tokens": pl.Series([None, None], dtype=pl.Int64),
            "sample.latency_ms": [1.5, None],
        }
    )
    assert values(frame, response="{{sample.citations[0].url}}") == ["u", None]
    assert values(frame, response="{{sample.retrieval[0].query}}") == ["q", None]
    assert values(frame, response="{{sample.usage.input_tokens}}") == ["7", None]
    assert values(frame, response="took {{sample.latency_ms}} ms") == ["took 1.5 ms", "took  ms"]


def test_sample_fields_are_read_from_the_answer() -> None:
    answer = {"sample.output_text": '{"name":"Ada"}', "sample.output_items_json": '[{"role":"assistant"}]'}
    frame = pl.DataFrame({"item_json": ["{}", "{}"], **{k: [v, "plain"] for k, v in answer.items()}})
    assert values(frame, response="{{sample.output_text}}") == ['{"name":"Ada"}', "plain"]
    assert values(frame, response="{{sample.output_items[0].role}}") == ["assistant", None]
    assert values(frame, response="{{sample.output_json.name}}") == ["Ada", None]
    assert values(frame, response="{{sample.output_object}}") == ['{"name":"Ada"}', '{"content":"plain"}']


def check(frames: list[pl.DataFrame], *, has_target: bool = False, **texts: str) -> None:
    """Check templates against blocks of rows."""
    fields = FieldCheck(templates(**texts), has_target=has_target)
    for frame in frames:
        fields.look(frame)
    fields.finish()


def test_a_field_no_item_has_is_refused_with_the_fields_there_are() -> None:  # field case F029
    frame = rows({"id": "1", "query": "q"})
    with pytest.raises(ConfigError, match=r"mapping query: item has no field question \(fields: id, query\)"):
        check([frame], has_target=True, query="{{item.question}}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{item.Query}}", r"no field Query .*; did you mean query\?"),
        ('{{item["my quer"]}}', r"no field my quer .*; did you mean query\?"),
        ("{{item.query.text}}", r"no field query\.text .*; did you mean query\?"),
        ("{{item.query[0]}}", r"no field query\[0\]"),
    ],
)
def test_the_nearest_field_is_offered(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check([rows({"query": "q"})], query=text)


def test_a_field_that_some_row_of_any_block_has_is_accepted() -> None:
    blocks = [rows({"a": 1}), rows(*[{"b": n} for n in range(50)], {"c": None})]
    check(blocks, query="{{item.a}} {{item.b}}", context="{{item.c}}")
    with pytest.raises(ConfigError, match=r"mapping context: item has no field d \(fields: a, b, c\)"):
        check(blocks, query="{{item.a}}", context="{{item.c}} {{item.d}}")


def test_without_rows_no_field_is_refused() -> None:
    check([], query="{{item.a}}")
    check([rows()], query="{{item.a}}")


def test_a_message_remembers_a_bounded_number_of_fields() -> None:
    wide = rows({f"k{n}": n for n in range(3_000)}, {f"l{n}": n for n in range(3_000)})
    with pytest.raises(ConfigError, match="k11 and 4988 more"):
        check([wide, wide], query="{{item.question}}")


@pytest.mark.parametrize(
    ("text", "has_target", "message"),
    [
        ("{{sample.output_text}}", False, r"mapping response: sample\.\* needs a target"),  # field case F035
        (
            "{{sample.output_txt}}",
            True,
            "mapping response: unknown field of sample 'output_txt'; did you mean",
        ),
        ("{{sample.output_text.name}}", True, r"sample\.output_text is text without members; output_json"),
        ("{{sample.tool_definitions}}", True, r"write \{\{item\.tool_definitions\}\}"),
        ("{{sample}}", True, "unknown field of sample"),
    ],
)
def test_what_an_answer_does_not_have_is_refused_without_data(
    text: str, has_target: bool, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        FieldCheck(templates(response=text), has_target=has_target)


def test_a_bare_column_name_is_a_placeholder_and_other_text_is_not() -> None:
    mapping = {"query": "my question", "context": "free text", "response": "{{item.a}}"}
    plain = plain_mapping(rows({"my question": "q", "a": "b"}), mapping)
    assert plain == mapping | {"query": '{{item["my question"]}}'}


def test_only_text_that_is_no_single_word_needs_the_rows() -> None:
    assert not is_ambiguous({"query": "question", "context": "{{item.a}}", "response": "<<item.b>>"})
    assert is_ambiguous({"query": "question", "context": "free text"})
    assert is_ambiguous({"query": "größe"})


def test_a_single_word_that_is_no_field_is_a_slip() -> None:
    frame = rows({"gold": "x"})
    plain = plain_mapping(frame.clear(), {"query": "glod"})
    with pytest.raises(ConfigError, match=r"no field glod .*did you mean gold"):
        check([frame], query=plain["query"])


@pytest.mark.parametrize("text", ["${outputs.a}", "${ data.a }", "x ${run.outputs.a}", "${data}", "${target"])
def test_what_only_looks_like_a_placeholder_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"mapping query: \$\{.* is not read; write \$\{data\.FIELD\}"):
        plain_mapping(rows({"a": 1}), {"query": text})


def test_two_placeholders_that_differ_in_quotes_are_two() -> None:
    frame = rows({"a": {"b": "nested"}, "a.b": "dotted"})
    assert values(frame, query='{{item.a.b}} {{item["a.b"]}}') == ["nested dotted"]


def test_a_constant_fills_every_row() -> None:
    mapped = map_fields(rows({"a": 1}, {"a": 2}), templates(query="constant"), ["query"])
    assert mapped["query"].to_list() == ["constant"] * 2


def test_an_index_before_the_first_element_is_missing() -> None:
    assert values(rows({"l": ["only"]}), query="{{item.l[-2]}}") == [None]


def test_typed_values_are_json_and_null_is_not_missing() -> None:
    frame = rows({"v": {"b": [1.10, "é"]}}, '{"v":1.10}', {"v": "text"}, {"v": None}, {"w": 1})
    mapped = map_values(frame, templates(query="{{item.v}}", context="v={{item.v}}"), ["query", "context"])
    assert mapped["query"].to_list() == ['{"b":[1.1,"é"]}', "1.10", '"text"', "null", None]
    assert mapped["context"].to_list()[:4] == ['"v={\\"b\\":[1.1,\\"é\\"]}"', '"v=1.10"', '"v=text"', '"v="']
    assert mapped["error_message"].to_list() == [None] * 4 + ["missing item.v"]


def test_typed_fields_without_a_template_are_their_standard_columns() -> None:
    frame = rows({}, {}).with_columns(
        pl.Series("query", ['say "x"', None]), pl.Series("messages_json", ['[{"role":"user"}]', None])
    )
    mapped = map_values(frame, {}, ["query", "messages"])
    assert mapped.select("query", "messages").rows() == [('"say \\"x\\""', '[{"role":"user"}]'), (None, None)]


def test_typed_fields_of_the_answer_keep_their_type() -> None:
    call = '{"type":"tool_call","tool_call_id":"c1","name":"f","arguments":{"n":1.0}}'
    frame = rows({}).with_columns(
        pl.lit('{"n":1e3}').alias("sample.output_text"), pl.lit(f"[{call}]").alias("sample.tool_calls_json")
    )
    texts = ["{{sample.output_text}}", "{{sample.output_json.n}}", "{{sample.tool_calls[0]}}"]
    texts += ["{{sample.output_tools[0].function}}", "{{sample.output_tools[0].id}}"]
    fields = {f"f{n}": parse_template(text, where="") for n, text in enumerate(texts)}
    assert map_values(frame, fields, fields).select(*fields).row(0) == (
        '"{\\"n\\":1e3}"',
        "1e3",
        call,
        '{"name":"f","arguments":"{\\"n\\":1.0}"}',
        '"c1"',
    )
