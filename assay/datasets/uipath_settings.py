"""Settings of UiPath's evaluators as options of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from assay.datasets.uipath_evaluators import pick

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.json_text import JsonValue
    from assay.datasets.uipath_evaluators import Evaluator

OUTPUT, BEHAVIOR = "expectedOutput", "expectedAgentBehavior"
JUDGED = "uipath-llm-judge-"  # what the ids of judges that compare begin with
NOTHING = ""  # the criterion of what is judged without an expectation
_LINES = {
    "lineByLineEvaluator": "line_by_line",
    "lineByLineEvaluation": "line_by_line",
    "lineDelimiter": "line_delimiter",
}
_CASE = {"caseSensitive": "case_sensitive", "negated": "negated"}
_JUDGE = {"prompt": "prompt", "model": "model", "temperature": "temperature", "maxTokens": "max_tokens"}
_FIGURES = {"metricType": "metric_type", "fValue": "f_value"}


class Kind(NamedTuple):
    """What is known about a type of evaluator.

    Attributes:
        criterion: The criterion that says what is expected; `NOTHING` where the output is judged alone.
        settings: Setting to option.
        listed: Whether the criterion lists tool calls and is an option itself; else it is compared with
            the output, or the part of it that `targetOutputKey` names.
    """

    criterion: str
    settings: Mapping[str, str]
    listed: bool = False


KINDS: Mapping[str, Kind] = {
    "uipath-exact-match": Kind(OUTPUT, {**_CASE, **_LINES, "aggregators": "aggregators"}),
    "uipath-contains": Kind("searchText", {**_CASE, **_LINES}),
    "uipath-json-similarity": Kind(OUTPUT, _LINES),
    "uipath-csv-column-match": Kind(OUTPUT, {**_LINES, "targetSubOutputKey": "columns"}),
    "uipath-binary-classification": Kind("expectedClass", {**_FIGURES, "positiveClass": "positive_class"}),
    "uipath-multiclass-classification": Kind(
        "expectedClass", {**_FIGURES, "classes": "classes", "averaging": "averaging"}
    ),
    "uipath-tool-call-order": Kind("toolCallsOrder", {"strict": "strict"}, listed=True),
    "uipath-tool-call-count": Kind("toolCallsCount", {"strict": "strict"}, listed=True),
    "uipath-tool-call-args": Kind("toolCalls", {"strict": "strict", "subset": "subset"}, listed=True),
    "uipath-tool-call-output": Kind("toolOutputs", {"strict": "strict"}, listed=True),
    "uipath-llm-judge-output-semantic-similarity": Kind(OUTPUT, _JUDGE),
    "uipath-llm-judge-output-strict-json-similarity": Kind(OUTPUT, _JUDGE),
    "uipath-llm-judge-trajectory-similarity": Kind(BEHAVIOR, _JUDGE),
    "uipath-llm-judge-trajectory-simulation": Kind(BEHAVIOR, _JUDGE),
    "uipath-context-precision": Kind(NOTHING, _JUDGE),
    "uipath-faithfulness": Kind(NOTHING, _JUDGE),
}


def read_settings(kind: Kind, evaluator: Evaluator) -> dict[str, JsonValue]:
    """Return the settings of an evaluator file as options; values that are not acceptable stay as they are.

    Case never matters where nothing is said, but in the older generation it always does. What is off is
    left out, and a delimiter without lines.
    """
    options: dict[str, JsonValue] = {}
    if _CASE.keys() <= kind.settings.keys():
        options = {"case_sensitive": evaluator.legacy, "negated": False}
    for setting, option in kind.settings.items():
        value = pick(evaluator.config, setting)
        if value and not (evaluator.legacy and setting in _CASE):
            options[option] = _list_columns(value) if option == "columns" else value
    if "line_by_line" not in options:
        options.pop("line_delimiter", None)
    return options


def _list_columns(value: JsonValue) -> JsonValue:
    """Split the names of columns, which the setting separates by commas."""
    if not isinstance(value, str):
        return value
    return [name for part in value.split(",") if (name := part.strip())]
