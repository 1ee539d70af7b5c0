from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import dump_json, parse_json
from assay.errors import ConfigError
from transforms.mapping import check_mapping, map_fields, plain_mapping
from transforms.templates import MISSING, Template, look_up, parse_template

BRACES = [  # field case F031
    {"id": "1", "query": "Render {{item.secret}} please", "secret": "S3CRET", "response": "ok"},
    {"id": "2", "query": "{# not a comment", "secret": "x", "response": "{% raw %}"},
    {"id": "3", "query": "^{{Ω}rel }is found", "secret": "x", "response": "}} {{"},
    {"id": "4", "query": "<<item.secret>>", "secret": "y", "response": "{{sample.output_text}}"},
    {
        "id": "5",
        "query": "{response} {0} %s $query ${data.query} \\1 \\g<0>",
        "secret": "z",
        "response": "{}",
    },
]


def rows(*sources: object) -> pl.DataFrame:
    texts = [source if isinstance(source, str) else json.dumps(source) for source in sources]
    return pl.DataFrame({"item_json": texts}, schema={"item_json": pl.String})


def templates(**texts: str) -> dict[str, Template]:
    return {field: parse_template(text, where=f"mapping {field}") for field, text in texts.items()}


def values(frame: pl.DataFrame, **texts: str) -> list[str | None]:
    return map_fields(frame, templates(**texts), texts)[next(iter(texts))].to_list()


def test_inserted_text_is_never_read_again() -> None:
    mapping = templates(query="Q: {{item.query}}", response="<<item.response>>")
    mapped = map_fields(rows(*BRACES), mapping, mapping)
    assert mapped["query"].to_list() == [f"Q: {row['query']}" for row in BRACES]
    assert mapped["response"].to_list() == [row["response"] for row in BRACES]
    assert "S3CRET" not in str(mapped.rows())
    assert mapped["error_code"].null_count() == len(BRACES)


def test_values_inside_text_are_compact_json_in_source_order() -> None:
    sources = [
        '{"v":{"b":1,"a":[true,null,"\\u00fc"]}}',
        '{"v":3.0}',
        '{"v":3}',
        '{"v":null}',
        '{"v":true}',
        '{"v":"plain"}',
        '{"v":[]}',
        '{"v":1e-7}',
        '{"v":1.10}',
        '{"v":92233720368547760001}',
    ]
    expected = ['{"b":1,"a":[true,null,"ü"]}', "3.0", "3", "", "true", "plain", "[]", "1e-7", "1.10"]
    expected.append("92233720368547760001")
    assert values(rows(*sources), query="v={{item.v}}") == [f"v={value}" for value in expected]


def test_missing_empty_and_null_are_three_things() -> None:
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


def test_sample_fields_are_read_from_the_answer() -> None:
    answer = {"sample.output_text": '{"name":"Ada"}', "sample.output_items_json": '[{"role":"assistant"}]'}
    frame = pl.DataFrame({"item_json": ["{}", "{}"], **{k: [v, "plain"] for k, v in answer.items()}})
    assert values(frame, response="{{sample.output_text}}") == ['{"name":"Ada"}', "plain"]
    assert values(frame, response="{{sample.output_items[0].role}}") == ["assistant", None]
    assert values(frame, response="{{sample.output_json.name}}") == ["Ada", None]
    assert values(frame, response="{{sample.output_object}}") == ['{"name":"Ada"}', '{"content":"plain"}']


def test_a_field_no_item_has_is_refused_with_the_fields_there_are() -> None:
    frame = rows({"id": "1", "query": "q"})
    with pytest.raises(ConfigError, match=r"mapping query: item has no field question \(fields: id, query\)"):
        check_mapping(frame, templates(query="{{item.question}}"), has_target=True)


def test_the_nearest_field_is_offered() -> None:
    with pytest.raises(ConfigError, match=r"did you mean query\?"):
        check_mapping(rows({"query": "q"}), templates(query="{{item.Query}}"), has_target=True)


def test_a_field_some_items_have_is_accepted() -> None:
    check_mapping(rows({"a": 1}, {"b": 1}), templates(query="{{item.a}}"), has_target=False)


def test_sample_needs_a_target() -> None:
    with pytest.raises(ConfigError, match=r"sample\.\* needs a target"):
        check_mapping(rows({}), templates(response="{{sample.output_text}}"), has_target=False)


def test_an_unknown_field_of_sample_names_the_known() -> None:
    with pytest.raises(ConfigError, match="did you mean output_text"):
        check_mapping(rows({}), templates(response="{{sample.output_txt}}"), has_target=True)


def test_a_bare_column_name_is_a_placeholder_and_other_text_is_not() -> None:
    mapping = {"query": "my question", "context": "free text", "response": "{{item.a}}"}
    plain = plain_mapping(rows({"my question": "q", "a": "b"}), mapping)
    assert plain == mapping | {"query": '{{item["my question"]}}'}


def test_a_single_word_that_is_no_field_is_a_slip() -> None:
    with pytest.raises(ConfigError, match=r"no field glod .*did you mean gold"):
        plain_mapping(rows({"gold": "x"}), {"expected_response": "glod"})


def test_an_index_before_the_first_element_is_missing() -> None:
    assert values(rows({"l": ["only"]}), query="{{item.l[-2]}}") == [None]


LEAF: Any = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
TREE: Any = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
STEP: Any = st.sampled_from(["a", "b", "a.b", "é", "x y"]) | st.integers(-2, 2)


@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b", "a.b", "é", "x y"]), TREE), min_size=1, max_size=5),
    st.lists(STEP, min_size=1, max_size=3),
)
def test_columns_and_a_walk_through_each_row_agree(sources: list[Any], steps: list[str | int]) -> None:
    text = "item" + "".join(f"[{s}]" if isinstance(s, int) else f"[{dump_json(s)}]" for s in steps)
    frame = rows(*(dump_json(source) for source in sources))
    mapped = map_fields(frame, templates(query=f"{{{{{text}}}}}"), ["query"])
    found = [look_up(parse_json(t), tuple(steps)) for t in frame["item_json"]]
    expected = [
        v if isinstance(v, str | None) else dump_json(v) for v in (None if f is MISSING else f for f in found)
    ]
    assert mapped["query"].to_list() == expected
    assert mapped["error_code"].is_not_null().to_list() == [f is MISSING for f in found]
