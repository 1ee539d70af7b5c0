"""Flat settings, as the command line and `assay.run` take them, turned into a run's configuration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, cast

from pydantic import ValidationError

from assay.config import DEFAULT_STORE, Limits, Reading, RunConfig, Selection
from assay.contracts.hiding import refuse_secrets
from assay.errors import ConfigError
from assay.parties import expand_names, make_embeddings, make_judge, make_panel, make_target

if TYPE_CHECKING:
    from pydantic import JsonValue

Engine = Literal["local", "prefect"]
ENGINES: tuple[Engine, ...] = ("local", "prefect")
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}

_NUMBER, _UNIT = r"(?:\d+(?:\.\d*)?|\.\d+)", "(?:ms|[smhd])"
_SETTING_OF = {"max_tokens": "max_tokens_total"}  # where a limit is called otherwise than its setting


class ReadSettings(TypedDict, total=False):
    """Keyword arguments of `load`: how datasets are read; the names are those of `Reading`."""

    encoding: str
    json_columns: list[str]
    allow_empty: bool
    lenient: bool
    strict: bool
    prefer: Literal["messages", "query"]
    on_bad_row: Literal["fail", "quarantine"]


class Settings(ReadSettings, total=False):
    """Keyword arguments of `run`; the names are those of the command line.

    Times are seconds, or texts such as `90s`, `15m`, `2h`.
    """

    target: str
    model: str
    base_url: str
    api_version: str
    api_key_env: str
    responses_api: bool
    stream: bool
    system: str
    prompt_template: str | Path
    temperature: float
    top_p: float
    seed: int
    max_output_tokens: int
    stop: str | list[str]
    params: dict[str, JsonValue]
    trials: int
    responses: str | Path
    config: str | Path
    judge: str | list[str]
    judge_base_url: str
    judge_api_version: str
    judge_api_key_env: str
    judge_repeats: int
    judge_vote: Literal["majority", "mean"]
    judge_prompts: list[str]
    canaries: str | Path
    jury: list[dict[str, object]]
    embedding_model: str
    embedding_base_url: str
    embedding_api_version: str
    embedding_api_key_env: str
    against: str
    only_if: dict[str, str]
    evaluators: str | list[str]
    own_evaluators: list[str]
    allow_graders_network: bool
    options: dict[str, dict[str, JsonValue]]
    mapping: dict[str, str]
    where: str
    id: str
    failed_of: str
    limit: int
    concurrency: int
    timeout_s: float | str
    rpm: float
    tpm: float
    max_wait_s: float | str
    deadline_s: float | str
    max_cost: float
    max_tokens_total: int
    prices: str | Path
    order_seed: int
    reuse: str
    resume: str
    batch_size: int
    max_errors: str | int
    name: str
    labels: list[str]
    store: str | Path
    engine: Engine


def make_config(datasets: list[str], settings: Settings) -> RunConfig:
    """Build the checked configuration of a run from flat settings.

    Args:
        datasets: Files, globs or folders.
        settings: What was asked for; None counts as not given. `engine` and `resume` say how to run, and
            are nothing of the configuration.

    Raises:
        ConfigError: A value is not acceptable; the message names the setting.
    """
    _check_names(datasets, settings)
    refuse_secrets({**settings, "datasets": datasets})
    settings = expand_names(cast("Settings", {k: v for k, v in settings.items() if v is not None}))
    asked, adds = _split_evaluators(settings.get("evaluators"))
    fields: dict[str, object] = {
        "datasets": tuple(datasets),
        "reading": {key: settings[key] for key in Reading.model_fields if key in settings},
        "target": make_target(settings),
        "judge": make_judge(settings),
        "panel": _locate_canaries(make_panel(settings)),
        "embeddings": make_embeddings(settings),
        "evaluators": asked,
        "add_evaluators": adds,
        "own_evaluators": tuple(map(_locate, _list_own(settings))),
        "options": _add_conditions(settings),
        "mapping": settings.get("mapping", {}),
        "selection": {key: settings.get(key) for key in Selection.model_fields},
        "limits": _make_limits(settings),
        "max_errors": str(settings.get("max_errors", "0")),
        "labels": tuple(settings.get("labels", ())),
        "store": str(settings.get("store", DEFAULT_STORE)),
    }
    if "responses" in settings:
        fields["responses"] = str(settings["responses"])
    if "timeout_s" in settings:
        fields["timeout_s"] = read_seconds("timeout", settings["timeout_s"])
    refuse_secrets(fields)
    plain = {"allow_graders_network", "trials", "concurrency", "reuse", "batch_size", "name", "against"}
    try:
        return RunConfig.model_validate(fields | {k: v for k, v in settings.items() if k in plain})
    except ValidationError as error:
        raise ConfigError(_describe(error)) from error


def read_seconds(option: str, value: float | str) -> float:
    """Read a time.

    Args:
        option: What it is for, for the message.
        value: Seconds, or a text with units: `500ms`, `90s`, `15m`, `2h`, `1h30m`, `1d`.

    Raises:
        ConfigError: It is no such text.
    """
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if re.fullmatch(_NUMBER, text):
        return float(text)
    if not re.fullmatch(rf"({_NUMBER}{_UNIT})+", text):
        raise ConfigError(f"{option}: {value!r} is no time; write seconds, or such as 90s, 15m, 2h, 1h30m")
    return sum(float(number) * SECONDS[unit] for number, unit in re.findall(f"({_NUMBER})({_UNIT})", text))


def _make_limits(settings: Settings) -> dict[str, object]:
    plain = {name: _SETTING_OF.get(name, name) for name in Limits.model_fields}
    given: dict[str, object] = {**settings}
    limits = {name: given[setting] for name, setting in plain.items() if setting in given}
    if "max_wait_s" in settings:
        limits["max_wait_s"] = read_seconds("max-wait", settings["max_wait_s"])
    if "deadline_s" in settings:
        limits["deadline_s"] = read_seconds("deadline", settings["deadline_s"])
    if "prices" in settings:
        limits["prices"] = str(settings["prices"])
    return limits


def _check_names(datasets: list[str], settings: Settings) -> None:
    for name in settings:
        if name not in Settings.__annotations__:
            raise ConfigError.unknown("setting", name, Settings.__annotations__)
    if not all(name.strip() for name in datasets):
        raise ConfigError("a dataset is named by an empty text; name a file or folder")


def _split_evaluators(names: str | list[str] | None) -> tuple[tuple[str, ...], bool]:
    """Return the names without their plus, and whether they come on top of those of the files."""
    if names is None:
        return (), False
    asked = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    plain = [name.removeprefix("+") for name in asked]
    adds = asked[0].startswith("+") if asked else False
    if not all(plain) or (not adds and plain != asked):
        raise ConfigError(f"evaluators {names!r}: write A,B to replace those of the files, +A,B to add")
    return tuple(plain), adds


def _list_own(settings: Settings) -> list[str]:
    """Return the places of own evaluators; a judge prompt is one."""
    prompts = settings.get("judge_prompts", [])
    for place in prompts:
        if not place.endswith(".md"):
            raise ConfigError(f"judge_prompts: {place} is no Markdown file; write --judge-prompt FILE.md")
    return [*settings.get("own_evaluators", ()), *prompts]


def _add_conditions(settings: Settings) -> dict[str, dict[str, JsonValue]]:
    """Return the options, with what evaluators wait for among them."""
    options = {name: dict(values) for name, values in settings.get("options", {}).items()}
    for name, condition in settings.get("only_if", {}).items():
        options.setdefault(name, {})["only_if"] = condition
    return options


def _locate(place: str) -> str:
    """Write the path of an own evaluator in full, so that every process of a run finds it."""
    return str(Path(place).absolute()) if place else place


def _locate_canaries(panel: dict[str, object]) -> dict[str, object]:
    place = panel.get("canaries")
    return panel if place in {None, "built-in"} else panel | {"canaries": _locate(str(place))}


def _describe(error: ValidationError) -> str:
    found = [(_name(each["loc"]), each["msg"].removeprefix("Value error, ")) for each in error.errors()]
    return "; ".join(dict.fromkeys(f"{setting}: {problem}" for setting, problem in found))


def _name(place: tuple[int | str, ...]) -> str:
    """Return the setting that a place in the configuration comes from."""
    if place[0] == "judge" or "jury" in place:
        return "judge" if place[-1] == "model" else f"judge_{place[-1]}"
    if place[0] == "embeddings":
        return f"embedding_{place[-1]}"
    if place[0] == "panel":
        return str(place[-1]) if place[-1] == "canaries" else f"judge_{place[-1]}"
    inner = place[:1] if place[0] in {"options", "mapping"} else reversed(place)
    names = [_SETTING_OF.get(str(part), str(part)) for part in inner]
    return next((name for name in names if name in Settings.__annotations__), str(place[0]))
