"""Whatever is in an array of messages: nothing vanishes, and the canonical form is the end of it."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import JsonValue, Number, dump_json, parse_json
from assay.datasets.messages import Canonical, canonical_calls, canonical_messages, dump_values

if TYPE_CHECKING:
    from collections.abc import Iterator

ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "critic"])
TEXTS = st.text(min_size=1, max_size=6)
NUMBERS = st.integers() | st.sampled_from(["1.50", "-0.0", "1E400"]).map(Number)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
EXTRAS = st.dictionaries(st.sampled_from(["x", "status", "annotations"]), VALUES, max_size=1)
OBJECT_TEXTS = st.dictionaries(TEXTS, VALUES, max_size=2).map(dump_json)
ARGUMENTS = OBJECT_TEXTS | TEXTS | VALUES
IDS = st.sampled_from(["c1", "c2", "c3"])


def build(required: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[Any]:
    """Objects of these keys, with extra ones."""
    whole = st.fixed_dictionaries(required, optional=optional or {})
    return st.tuples(whole, EXTRAS).map(lambda pair: pair[1] | pair[0])


FUNCTIONS = st.fixed_dictionaries({"name": TEXTS, "arguments": ARGUMENTS})
CHAT_CALLS = build({"id": IDS, "type": st.just("function"), "function": FUNCTIONS})
CALLS = st.sampled_from(["tool_call", "function_call", "openapi_call"])
RESULTS = st.sampled_from(["function_call_output", "custom_tool_call_output", "openapi_call_output"])
ITEMS = st.one_of(
    build({"type": st.sampled_from(["text", "input_text", "output_text"]), "text": TEXTS}),
    build({"type": st.just("text"), "content": TEXTS}),
    build({"type": CALLS, "name": TEXTS, "arguments": ARGUMENTS}, {"tool_call_id": IDS}),
    build({"type": CALLS, "name": TEXTS, "arguments": ARGUMENTS, "call_id": IDS}),
    build({"type": st.just("tool_call"), "name": TEXTS}, {"id": IDS, "arguments": ARGUMENTS}),
    build({"type": st.just("custom_tool_call"), "name": TEXTS, "input": TEXTS}, {"call_id": IDS}),
    build({"type": st.just("tool_result")}, {"tool_result": VALUES, "tool_call_id": IDS}),
    build({"type": RESULTS, "output": VALUES}, {"call_id": IDS}),
    build({"type": st.just("tool_call_response")}, {"id": IDS, "response": VALUES}),
    build(
        {
            "type": st.sampled_from(["reasoning", "image_url", "computer_call_output", "custom"]),
            "data": VALUES,
        }
    ),
)
CONTENTS = st.none() | TEXTS | st.lists(ITEMS, max_size=3) | st.lists(TEXTS, max_size=2) | ITEMS
MESSAGES = build(
    {"role": ROLES},
    {
        "content": CONTENTS,
        "parts": st.lists(ITEMS, max_size=3),
        "tool_calls": st.none() | st.lists(CHAT_CALLS | ITEMS, max_size=2),
        "function_call": FUNCTIONS,
        "refusal": st.none() | TEXTS,
        "tool_call_id": IDS,
        "type": st.just("message"),
    },
)
ARRAYS = st.lists(MESSAGES | ITEMS, min_size=1, max_size=4)


def read(value: Any) -> Canonical:
    canonical = canonical_messages(value)
    assert isinstance(canonical, Canonical), canonical
    return canonical


def list_leaves(value: JsonValue, key: str = "") -> Iterator[str]:
    """Texts and numbers of a value, without roles and types; texts of objects as what they say."""
    if isinstance(value, str) and key in {"arguments", "input"} and value.lstrip().startswith("{"):
        value = parse_text(value)
    if isinstance(value, dict):
        for name, member in value.items():
            yield from list_leaves(member, name) if name not in {"role", "type"} else ()
    elif isinstance(value, list):
        for member in value:
            yield from list_leaves(member)
    elif value is not None:
        yield dump_json(value)


def parse_text(text: str) -> JsonValue:
    try:
        return parse_json(text)
    except ValueError:
        return text


@given(value=ARRAYS)
def test_the_canonical_form_of_the_canonical_form_is_itself(value: list[Any]) -> None:
    once = read(value)
    again = read(once.messages)
    assert again == Canonical(once.messages)
    assert dump_json(again.messages) == dump_json(once.messages)


@given(value=ARRAYS)
def test_nothing_vanishes_and_the_source_is_not_touched(value: list[Any]) -> None:
    source = copy.deepcopy(value)
    messages = read(value).messages
    assert value == source
    assert set(list_leaves(source)) <= set(list_leaves([*messages]))


@given(value=ARRAYS)
def test_every_canonical_message_has_a_role_and_text_or_items(value: list[Any]) -> None:
    for message in read(value).messages:
        content = message.get("content", "")
        assert next(iter(message)) == "role"
        assert isinstance(content, str | list)
        kinds = [item.get("type") for item in content if isinstance(item, dict)]
        assert "tool_result" not in kinds or message["role"] == "tool"


@given(value=ARRAYS)
def test_conversions_are_named_where_something_changed(value: list[Any]) -> None:
    canonical = read(value)
    changed = json.loads(dump_json(canonical.messages)) != json.loads(dump_json(value))
    assert changed or not canonical.conversions


@given(value=VALUES | st.lists(VALUES, min_size=1, max_size=3))
def test_any_other_value_is_read_or_refused(value: Any) -> None:
    for found in (canonical_messages(value), canonical_calls(value)):
        assert not isinstance(found, str) or ("expected" in found or "neither" in found or "JSON" in found)


@given(value=st.lists(VALUES, max_size=3))
def test_values_are_written_as_everywhere_else(value: list[Any]) -> None:
    assert dump_values(value) == dump_json(value)
