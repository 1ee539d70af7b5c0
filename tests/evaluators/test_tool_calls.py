from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import CallError, ConfigError
from evaluators.called_tools import read_calls, read_literal, sanitise
from evaluators.tool_call_args import ToolCallArgsOptions, compare_arguments
from evaluators.tool_call_count import ToolCallCountOptions, compare_counts
from evaluators.tool_call_order import ToolCallOrderOptions, compare_order
from evaluators.tool_call_output import ToolCallOutputOptions, compare_outputs

if TYPE_CHECKING:
    from evaluators.contract import Verdict

Fields = dict[str, str | None]
NONE_MADE: Fields = {"response": "", "tool_calls": None, "output_items": None}


def call(name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "tool_call", "tool_call_id": f"id-{name}", "name": name, "arguments": arguments, **more}


def make(*calls: dict[str, Any], **outputs: Any) -> Fields:
    results: list[Any] = [
        {
            "role": "tool",
            "tool_call_id": f"id-{name}",
            "content": [{"type": "tool_result", "tool_result": value}],
        }
        for name, value in outputs.items()
    ]
    return {
        "response": "",
        "tool_calls": json.dumps(calls),
        "output_items": json.dumps([{"role": "assistant", "content": list(calls)}, *results]),
    }


def order(fields: Fields, *names: str, **options: Any) -> Verdict:
    return compare_order(ToolCallOrderOptions(tool_calls_order=list(names), **options), fields)


def count(fields: Fields, counts: dict[str, list[Any]], **options: Any) -> Verdict:
    return compare_counts(ToolCallCountOptions(tool_calls_count=counts, **options), fields)


def args(fields: Fields, *calls: dict[str, Any], **options: Any) -> float | None:
    return compare_arguments(
        ToolCallArgsOptions.model_validate({"tool_calls": [*calls], **options}), fields
    ).score


def output(fields: Fields, *outputs: dict[str, Any], **options: Any) -> float | None:
    checked = ToolCallOutputOptions.model_validate({"toolOutputs": [*outputs], **options})
    return compare_outputs(checked, fields).score


def test_the_order_is_the_longest_common_subsequence() -> None:
    verdict = order(make(call("a"), call("b"), call("c")), "a", "c", "b")
    assert verdict.score == pytest.approx(2 / 3)
    assert (verdict.reason, verdict.details) == (
        "not in order: b",
        {"lcs": ["a", "c"], "calls": ["a", "b", "c"]},
    )
    assert order(make(call("a"), call("x"), call("b")), "a", "b").score == 1.0
    assert order(make(call("a"), call("x"), call("b")), "a", "b", strict=True).score == 0.0
    assert order(make(call("a"), call("b")), "a", "b", strict=True).score == 1.0


def test_calls_that_are_null_are_none() -> None:
    assert order(NONE_MADE).score == 1.0
    assert order(NONE_MADE, "a").reason == "no call made, 1 expected"
    assert order(make(call("a"))).reason == "no call expected, 1 made"
    assert order({**NONE_MADE, "tool_calls": "null"}, "a").score == 0.0
    assert args(NONE_MADE) == output(NONE_MADE) == 1.0


def test_a_tool_is_known_by_its_name_and_its_id() -> None:
    fields = make(call("Web Search", tool_id="t1"), call("b"))
    assert order(fields, "Web_Search", "b").score == order(fields, "t1", "b").score == 1.0
    assert args(fields, {"name": "other", "id": "t1", "args": {}}) == 1.0
    assert count(fields, {"t1": ["=", 1], "Web Search": ["=", 1]}).score == 1.0


def test_names_of_other_scripts_stay_apart() -> None:
    assert sanitise(" Web  Search! ", exact=False) == "Web_Search"
    assert sanitise("\u67e5\u8be2", exact=False) != sanitise("\u641c\u7d22", exact=False)
    assert sanitise("\u67e5\u8be2", exact=True) == ""
    assert len(sanitise("x" * 99, exact=False)) == 64


def test_counts_hold_or_not() -> None:
    fields = make(call("a"), call("b"))
    verdict = count(fields, {"a": ["=", 1], "b": [">=", 2]})
    assert (verdict.score, verdict.reason) == (0.5, "b 1, expected >= 2")
    assert verdict.details == {"counts": {"a": 1, "b": 1}}
    assert count(fields, {"a": ["=", 1], "b": [">=", 2]}, strict=True).score == 0.0
    assert count(NONE_MADE, {"z": ["=", 0]}).score == 1.0
    assert count(NONE_MADE, {"z": [">", 0]}).score == 0.0
    assert count(NONE_MADE, {}).score == 1.0


@pytest.mark.parametrize("wanted", [["~", 1], ["="], ["=", "1"], ["=", True], [1, "="], []])
def test_a_count_that_is_no_comparison_is_refused(wanted: list[Any]) -> None:
    options = ToolCallCountOptions(tool_calls_count={"a": wanted})
    with pytest.raises(ConfigError, match=r"ToolCallCount\.tool_calls_count\.a: got"):
        options.check_setup()


def test_arguments_are_exact_unless_subset() -> None:
    fields = make(call("a", {"x": 1, "y": "Paris"}))
    assert args(fields, {"name": "a", "args": {"x": 1.0}}) == 0.0
    assert args(fields, {"name": "a", "args": {"x": 1.0}}, subset=True) == 1.0
    assert args(fields, {"name": "a", "args": {"x": True}}, subset=True) == 0.0
    assert args(fields, {"name": "a", "args": {"x": 1, "y": "paris"}}) == 0.0
    assert args(fields, {"name": "a", "arguments": {"x": 1, "y": "paris"}}, case_sensitive=False) == 1.0
    assert args(make(call("a", '{"x": 1}')), {"name": "a", "args": {"x": 1}}) == 1.0
    assert args(make(call("a", "{'x': None}")), {"name": "a", "args": {"x": None}}) == 1.0


def test_a_made_call_matches_one_expected_call() -> None:
    fields = make(call("a", {"x": 1}))
    expected = {"name": "a", "args": {"x": 1}}
    assert args(fields, expected, expected) == 0.5
    assert args(fields, expected, expected, strict=True) == 0.0


def test_outputs_are_compared_as_json_python_or_text() -> None:
    fields = make(call("a"), call("b"), call("c"), a='{"t": 25}', b={"content": "42"}, c="Hello")
    assert output(fields, {"name": "a", "output": "{'t': 25.0}"}) == 1.0
    assert output(fields, {"name": "b", "output": "42"}, {"name": "b", "output": '{"content": "42"}'}) == 0.5
    assert output(fields, {"name": "c", "output": "hello"}) == 0.0
    assert output(fields, {"name": "c", "output": "hello"}, case_sensitive=False) == 1.0
    assert (
        output(fields, {"name": "c", "output": "x"}, {"name": "a", "output": '{"t":25}'}, strict=True) == 0.0
    )


def test_outputs_that_the_answer_does_not_tell_are_an_error() -> None:
    with pytest.raises(CallError, match="missing_field: output_items hold no output"):
        output(make(call("a")), {"name": "a", "output": ""})
    assert output(make(call("a"), call("b"), b="x"), {"name": "a", "output": ""}) == 0.0


def test_outputs_are_found_in_messages_and_items_of_any_form() -> None:
    items: list[Any] = [
        {"role": "tool", "tool_call_id": "id-a", "content": '{"t":25}'},
        {"type": "function_call_output", "call_id": "id-b", "output": "x"},
        {"role": "assistant", "content": "done"},
    ]
    fields = make(call("a"), call("b")) | {"output_items": json.dumps(items)}
    assert [each.output for each in read_calls(fields)] == ['{"t":25}', "x"]
    assert output(fields, {"name": "a", "output": "{'t': 25}"}, {"name": "b", "output": "x"}) == 1.0


@pytest.mark.parametrize("field", ["tool_calls", "output_items"])
@pytest.mark.parametrize("text", ["some text", "{", "NaN"])
def test_fields_that_are_not_json_are_an_error(field: str, text: str) -> None:
    with pytest.raises(CallError, match=f"bad_field: {field} is not JSON"):
        read_calls({**NONE_MADE, field: text})
    with pytest.raises(CallError, match=f"bad_field: {field} is"):
        read_calls({**NONE_MADE, field: '{"a":1}'})


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        (["search"], "tool_calls[0] is text, expected an object with name and arguments"),
        ([call("a"), 7], "tool_calls[1] is a number, expected an object with name and arguments"),
        ([{"arguments": 1}], "tool_calls[0].name is null, expected the name of a tool"),
        ([call(" ")], "tool_calls[0].name is blank, expected the name of a tool"),
        (0, "tool_calls is a number, expected a list of tool calls with name and arguments"),
        (False, "tool_calls is a boolean, expected a list of tool calls with name and arguments"),
        ({"name": "a"}, "tool_calls is an object, expected a list of tool calls"),
    ],
)
def test_what_is_no_list_of_calls_is_an_error_not_no_calls(calls: object, message: str) -> None:
    with pytest.raises(CallError) as caught:
        count({**NONE_MADE, "tool_calls": json.dumps(calls)}, {"search": ["=", 0]})
    assert (caught.value.code, caught.value.message) == ("bad_field", message)


@pytest.mark.parametrize("items", ["", "0", "false", '""', "{}"])
def test_output_items_that_are_no_list_are_an_error(items: str) -> None:
    with pytest.raises(CallError, match="bad_field: output_items is"):
        read_calls({**NONE_MADE, "output_items": items})
    assert read_calls({**NONE_MADE, "output_items": "[]"}) == []


def test_calls_of_chat_completions_are_read() -> None:
    calls = [{"type": "function", "id": "id-a", "function": {"name": "search", "arguments": '{"x":1}'}}]
    fields: Fields = {**NONE_MADE, "tool_calls": json.dumps(calls)}
    assert count(fields, {"search": ["=", 0]}).score == 0.0
    assert count(fields, {"search": ["=", 1]}).score == order(fields, "search").score == 1.0
    assert args(fields, {"name": "search", "args": {"x": 1}}) == 1.0
    results = make(a="found")["output_items"]
    items = json.loads(results or "[]")[1:]
    fields["output_items"] = json.dumps(items)
    assert output(fields, {"name": "search", "output": "found"}) == 1.0


def test_a_call_of_a_kind_of_its_own_has_the_name_of_its_kind() -> None:
    fields: Fields = {**NONE_MADE, "tool_calls": '[{"type":"web_search_call","id":"1"}]'}
    assert [each.name for each in read_calls(fields)] == ["web_search_call"]


@pytest.mark.parametrize(
    ("wanted", "options", "reason"),
    [
        ({"q": 1}, {}, "search: unexpected argument x"),
        ({"q": 2, "x": "b"}, {}, "search: expected q=2, got q=1"),
        (
            {"q": True, "y": [1]},
            {"subset": True},
            "search: expected q=true, got q=1, expected y=[1], got none",
        ),
        ({"q": 2}, {"compat": "uipath"}, "search: expected q=2, got q=1"),
    ],
)
def test_the_reason_says_which_argument_differs(
    wanted: dict[str, Any], options: dict[str, Any], reason: str
) -> None:
    fields = make(call("other", {}), call("search", {"q": 1, "x": "b"}))
    expected = {"tool_calls": [{"name": "search", "args": wanted}], **options}
    verdict = compare_arguments(ToolCallArgsOptions.model_validate(expected), fields)
    assert (verdict.score, verdict.reason) == (0.0, reason)


def test_the_nearest_free_call_is_the_one_that_is_compared() -> None:
    fields = make(call("a", {"x": 1, "y": 1}), call("a", {"x": 1, "y": 2}), call("b", "text"))
    expected: list[Any] = [
        ("a", {"x": 1, "y": 2}),
        ("a", {"x": 1, "y": 3}),
        ("a", {"x": 0}),
        ("b", {}),
        ("c", {}),
    ]
    calls: list[Any] = [{"name": name, "args": wanted} for name, wanted in expected]
    verdict = compare_arguments(ToolCallArgsOptions.model_validate({"tool_calls": calls}), fields)
    assert (verdict.reason or "").split("; ") == [
        "no match for c",
        "a: expected y=3, got y=1",
        "a: expected x=0, got x=1, unexpected argument y",
        "b: arguments are text, expected an object",
    ]


@given(st.text())
def test_any_text_is_a_literal_or_a_value_error(text: str) -> None:
    try:
        json.dumps(read_literal(text))
    except ValueError:
        return


@given(st.lists(st.sampled_from("abc"), max_size=6))
def test_calls_are_in_the_order_they_were_made(names: list[str]) -> None:
    fields = make(*(call(name, {}) for name in names))
    assert order(fields, *names).score == order(fields, *names, strict=True).score == 1.0
    wanted: list[dict[str, Any]] = [{"name": name, "args": {}} for name in reversed(names)]
    assert args(fields, *wanted) == 1.0
    assert count(fields, {name: ["=", names.count(name)] for name in names}).score == 1.0
