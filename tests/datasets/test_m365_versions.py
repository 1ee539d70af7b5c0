"""Versions of M365 eval documents: what is read, what is said about it, and what a strict reading refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.datasets.faults import Faults
from assay.datasets.files import Source
from assay.datasets.m365 import read
from assay.errors import InputError

if TYPE_CHECKING:
    from assay.contracts.documents import Document, Notice


def _read(root: Any) -> Document:
    text = root if isinstance(root, str) else json.dumps(root)
    faults = Faults("evals.json", "item")
    document = read(Source(Path("evals.json"), "evals.json", text, "sha"), faults)
    faults.raise_any()
    return document


def _document(version: str, *items: Any, **root: Any) -> dict[str, Any]:
    return {"schemaVersion": version, **root, "items": list(items or [{"prompt": "p"}])}


def _tell(notice: Notice) -> tuple[str, str, bool]:
    return notice.code, notice.pointer, notice.strict


@pytest.mark.parametrize(
    "version", ["1.0.0", "1.1.0", "1.2.0", "1.6.0", "1.10.3", "1.11.0", "1.11.9", "2.0.0", "2.0.1"]
)
def test_a_known_version_is_read_without_a_word(version: str) -> None:
    document = _read(_document(version))
    assert (document.schema_version, document.notices) == (version, ())


@pytest.mark.parametrize("version", ["1.12.0", "1.99.0", "2.1.0", "1.99999999999999999999.0"])
def test_a_newer_version_is_read_and_a_strict_reading_refuses_it(version: str) -> None:
    document = _read(_document(version))
    assert [_tell(notice) for notice in document.notices] == [("version_too_new", "schemaVersion", True)]
    assert "1.0.0 to 1.11.x and 2.0.x" in document.warnings[0]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ('"3.0.0"', '"3.0.0" is not supported; accepted: 1.0.0 to 1.11.x and 2.0.x'),
        ('"0.9.0"', '"0.9.0" is not supported'),
        ('"1.6"', 'did you mean "1.6.0"? accepted: 1.0.0'),
        ("1", 'did you mean "1.0.0"?'),
        ('"1.6.0-beta"', '"1.6.0-beta" is not a version; accepted: 1.0.0 to 1.11.x'),
        ('"version-one"', "is not a version"),
        ('"1.\\u0666.0"', "is not a version"),
        ("null", "null is not a version"),
        ("[1]", "[1] is not a version"),
    ],
)
def test_what_is_no_known_version_is_refused_at_its_place(version: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        _read(f'{{\n "items": [{{"prompt": "p"}}],\n "schemaVersion": {version}}}')
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column, caught.value.pointer) == (3, 19, "schemaVersion")


@pytest.mark.parametrize(
    ("text", "pointer"),
    [('\n[{"prompt": "a"}]', ""), ('{"expected_responses": ["b"],\n "prompts": ["a"]}', "prompts")],
)
def test_an_older_form_is_converted_in_memory_and_that_is_said(text: str, pointer: str) -> None:
    notices = _read(text).notices
    assert [_tell(notice) for notice in notices] == [
        ("version_missing", "", True),
        ("version_upgraded", pointer, False),
    ]
    assert "the file stays as it is" in notices[1].message


def test_a_missing_version_alone_converts_nothing() -> None:
    assert [notice.code for notice in _read({"items": [{"prompt": "a"}]}).notices] == ["version_missing"]


EVALUATED: dict[str, Any] = {"prompt": "p", "evaluators": {"ExactMatch": {}}, "evaluators_mode": "replace"}


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_turns_and_evaluators_before_their_version_are_read_with_a_notice(version: str) -> None:
    turns: dict[str, Any] = {"turns": [{"prompt": "t"}, EVALUATED]}
    document = _read(_document(version, EVALUATED, turns, default_evaluators={"Relevance": {}}))
    assert document.rows.height == 3
    assert [_tell(notice) for notice in document.notices] == [
        ("version_too_low", "default_evaluators", True),
        ("version_too_low", "items[0].evaluators", True),
        ("version_too_low", "items[0].evaluators_mode", True),
        ("version_too_low", "items[1].turns", True),
    ]
    assert document.notices[1].message.endswith(f"this document is {version}; 2 times in this file")


def test_more_turns_than_the_format_has_are_read_with_a_notice() -> None:
    document = _read(_document("1.2.0", {"turns": [{"prompt": "t"}] * 21}))
    assert document.rows.height == 21
    assert [_tell(notice) for notice in document.notices] == [("too_many_turns", "items[0].turns", True)]
    assert _read(_document("1.2.0", {"turns": [{"prompt": "t"}] * 20})).notices == ()


def test_unknown_fields_of_the_first_version_are_kept_with_a_notice() -> None:
    document = _read(_document("1.0.0", {"prompt": "p", "expected_respnse": 1.50, "vendor": []}))
    assert [_tell(notice) for notice in document.notices] == [
        ("unknown_field", "items[0].expected_respnse", True),
        ("unknown_field", "items[0].vendor", True),
    ]
    assert "did you mean expected_response" in document.notices[0].message
    assert json.loads(document.rows["item_json"][0])["expected_respnse"] == 1.5


@pytest.mark.parametrize("version", ["1.1.0", "1.11.0", "1.12.0", "2.0.0"])
def test_later_versions_refuse_unknown_fields(version: str) -> None:
    with pytest.raises(InputError, match="unknown field; did you mean expected_response"):
        _read(_document(version, {"prompt": "p", "expected_respnse": ""}))


def test_a_misspelt_prompt_of_the_first_version_is_named() -> None:
    with pytest.raises(InputError, match="did you mean prompt by promt") as caught:
        _read('{"items": [\n {"promt": "p"}]}')
    assert (caught.value.line, caught.value.column, caught.value.pointer) == (2, 2, "items[0]")


LABELS = {"testId": "T", "id": "T", "category": "c", "notes": "n", "name": "n", "description": "d"}


@pytest.mark.parametrize("version", ["1.0.0", "1.11.0", "2.0.0"])
@pytest.mark.parametrize("field", list(LABELS))
def test_labels_that_the_published_schema_lacks_are_read_with_a_notice(version: str, field: str) -> None:
    document = _read(_document(version, {"prompt": "p", field: LABELS[field]}))
    assert [_tell(notice) for notice in document.notices] == [("foreign_field", f"items[0].{field}", True)]


def test_a_thread_has_a_name_and_a_description_of_its_own() -> None:
    document = _read(_document("1.11.0", {"turns": [{"prompt": "t"}], **LABELS}))
    assert [notice.pointer for notice in document.notices] == [
        f"items[0].{field}" for field in ("testId", "id", "category", "notes")
    ]


def test_what_holds_for_many_items_is_said_once_with_its_first_place() -> None:
    items = [{"prompt": "p"}, *({"prompt": "p", "testId": str(n)} for n in range(500))]
    (notice,) = _read(json.dumps(_document("1.11.0", *items), indent=1)).notices
    assert (notice.line, notice.column, notice.pointer) == (9, 14, "items[1].testId")
    assert notice.message.endswith("500 times in this file")


def test_keys_of_the_root_are_free_and_a_slip_is_pointed_out() -> None:
    free = {"$schema": "s", "metadata": {"tags": ["a"]}, "description": "d", "owner": "Kessalo"}
    assert _read(_document("1.11.0", default_allowed_tools=["a_b"], **free)).notices == ()
    document = _read(_document("1.11.0", evaluators={"ExactMatch": {}}))
    assert [_tell(notice) for notice in document.notices] == [("unknown_key", "evaluators", False)]
    assert "did you mean default_evaluators" in document.warnings[0]


def test_prompts_beside_items_are_not_dropped_in_silence() -> None:
    document = _read(_document("1.11.0", prompts=["a"], expected_responses=["b"]))
    assert sorted(_tell(notice) for notice in document.notices) == [
        ("unknown_key", "expected_responses", False),
        ("unknown_key", "prompts", False),
    ]


@given(st.text("0123456789.", max_size=12) | st.text(max_size=6))
def test_any_version_is_read_or_refused_by_name(version: str) -> None:
    try:
        stated = _read(_document(version)).schema_version
    except InputError as error:
        stated = version if (error.pointer, error.line) == ("schemaVersion", 1) else None
    assert stated == version
