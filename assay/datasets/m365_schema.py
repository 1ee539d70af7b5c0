"""What version 1.11.0 of the published schema accepts as an eval document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assay.contracts.json_text import JsonValue, dump_json
from assay.datasets.cells import name_kind
from assay.datasets.m365_scores import CITATIONS, DIAGNOSTICS, ERROR, SCORES, STATUS, SUMMARY
from assay.datasets.m365_shapes import (
    Deviation,
    accept_any,
    accept_flag,
    accept_list,
    accept_number,
    accept_object,
    accept_one_of,
    accept_text,
    accept_visible_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.datasets.m365_shapes import Path, Shape

_VERSION = re.compile(r"1\.\d+\.\d+", re.ASCII)
_EVALUATOR = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")
_MODE = accept_one_of("extend", "replace")
_TAGS = accept_list(accept_text())
_OPEN = accept_object({}, (), accept_any)

_JUDGED = accept_object({"threshold": accept_number(1, 5)})
_CALLS = accept_list(
    accept_object(
        {
            "id": accept_text(1),
            "tool": accept_object(
                {"plugin_name": accept_text(1), "function_name": accept_text(1)},
                ("plugin_name", "function_name"),
            ),
        },
        ("tool",),
    ),
    1,
)
_RETRIEVAL_QUERY = accept_object(
    {
        "capability": accept_text(1),
        "selector": accept_text(1),
        "includes": accept_list(accept_text(1)),
        "excludes": accept_list(accept_text(1)),
    },
    ("capability", "selector"),
)
_RETRIEVAL_RESULT = accept_object(
    {
        "capability": accept_text(1),
        "max_rank": accept_number(1, whole=True),
        "min_expected_count": accept_number(1, whole=True),
        "expected_items": accept_list(
            accept_object({"retrievalExtract_contains": accept_text(1)}, ("retrievalExtract_contains",)), 1
        ),
    },
    ("capability",),
)


def _check_retrieval_result(value: JsonValue, path: Path) -> Iterator[Deviation]:
    yield from _RETRIEVAL_RESULT(value, path)
    if isinstance(value, dict) and not {"expected_items", "min_expected_count"} & value.keys():
        yield Deviation(path, "expects nothing; name expected_items, min_expected_count or both")


_OPTIONS: dict[str, Shape] = {
    "Relevance": _JUDGED,
    "Coherence": _JUDGED,
    "Groundedness": _JUDGED,
    "Similarity": _JUDGED,
    "Citations": accept_object({"threshold": accept_number(1, whole=True), "citation_format": accept_text()}),
    "ExactMatch": accept_object({"case_sensitive": accept_flag}),
    "PartialMatch": accept_object({"threshold": accept_number(0, 1), "case_sensitive": accept_flag}),
    "RetrievalQuery": _RETRIEVAL_QUERY,
    "RetrievalResult": _check_retrieval_result,
    "ToolCallSelection": accept_object({"calls": _CALLS, "allow_additional_calls": accept_flag}, ("calls",)),
    "ToolCallExecution": accept_object({"calls": _CALLS}, ("calls",)),
}
# Any other name is an evaluator of the user's own; whether it exists is not for the schema to say.
_EVALUATORS = accept_object(_OPTIONS, (), accept_object({"threshold": accept_number(), "options": _OPEN}))


def _check_evaluators(value: JsonValue, path: Path) -> Iterator[Deviation]:
    yield from _EVALUATORS(value, path)
    for name in value if isinstance(value, dict) else ():
        if not _EVALUATOR.fullmatch(name):
            yield Deviation((*path, name), "is no name; accepted: letters, digits and _, a letter first")


_ALLOWED = accept_list(accept_visible_text)
_TURN: dict[str, Shape] = {
    "prompt": accept_text(1),
    "expected_response": accept_text(),
    "response": accept_text(),
    "context": accept_text(),
    "evaluators": _check_evaluators,
    "evaluators_mode": _MODE,
    "allowed_tools": _ALLOWED,
    "allowed_tools_mode": _MODE,
    "citations": CITATIONS,
    "scores": SCORES,
    "diagnostics": DIAGNOSTICS,
    "status": STATUS,
    "error": ERROR,
    "tags": _TAGS,
    "extensions": _OPEN,
}
_SINGLE = accept_object(_TURN, ("prompt",))
_THREAD = accept_object(
    {
        "name": accept_text(),
        "description": accept_text(),
        "turns": accept_list(_SINGLE, 1, 20),
        "conversation_id": accept_text(),
        "summary": SUMMARY,
        "tags": _TAGS,
        "extensions": _OPEN,
    },
    ("turns",),
)


def _check_item(value: JsonValue, path: Path) -> Iterator[Deviation]:
    if not isinstance(value, dict):
        yield Deviation(path, f"{name_kind(value)}, expected an object")
    elif ("prompt" in value) == ("turns" in value):
        yield Deviation(path, f"{'both' if 'turns' in value else 'neither'} prompt and turns")
    else:
        yield from (_THREAD if "turns" in value else _SINGLE)(value, path)


def _check_version(value: JsonValue, path: Path) -> Iterator[Deviation]:
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        yield Deviation(path, f'{dump_json(value)} is not a version 1.x, such as "1.11.0"')


_METADATA = accept_object(
    {
        "name": accept_text(),
        "description": accept_text(),
        "createdAt": accept_text(),  # dates are not looked into, as the schema's formats are notes
        "createdBy": accept_text(),
        "evaluatedAt": accept_text(),
        "tags": _TAGS,
        "agentId": accept_text(),
        "agentName": accept_text(),
        "cliVersion": accept_text(),
        "extensions": _OPEN,
    },
    (),
    accept_any,
)
_DOCUMENT = accept_object(
    {
        "$schema": accept_text(),
        "schemaVersion": _check_version,
        "metadata": _METADATA,
        "default_evaluators": _check_evaluators,
        "default_allowed_tools": _ALLOWED,
        "items": accept_list(_check_item, 1),
    },
    ("schemaVersion", "items"),
    accept_any,
)


def find_deviations(root: JsonValue) -> list[Deviation]:
    """Return where a document is not what the published schema accepts; none means that it is valid.

    The rules are those of the schema that came with version 1.11.0, which serves every 1.x; what a
    `format` says of dates and addresses is not part of them. An evaluator with an unknown name counts
    as the user's own, as it does there.
    """
    return list(_DOCUMENT(root, ()))
