"""Flat settings, as the command line and `assay.run` take them, turned into a run's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from pydantic import ValidationError

from assay.config import DEFAULT_STORE, Reading, RunConfig, Selection
from assay.errors import ConfigError, list_names

if TYPE_CHECKING:
    from pydantic import JsonValue

Engine = Literal["local", "prefect"]
ENGINES: tuple[Engine, ...] = ("local", "prefect")


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
    """Keyword arguments of `run`; the names are those of the command line."""

    target: str
    model: str
    base_url: str
    judge: str
    judge_base_url: str
    system: str
    prompt_template: str | Path
    responses: str | Path
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
    timeout_s: float
    batch_size: int
    max_errors: str | int
    name: str
    labels: list[str]
    store: str | Path
    engine: Engine


def make_config(datasets: list[str], settings: Settings) -> RunConfig:
    """Build the checked configuration of a run from flat settings.

    Raises:
        ConfigError: A value is not acceptable; the message names the setting.
    """
    _check_names(datasets, settings)
    asked, adds = _split_evaluators(settings.get("evaluators"))
    responses = settings.get("responses")
    fields: dict[str, object] = {
        "datasets": tuple(datasets),
        "reading": {key: settings[key] for key in Reading.model_fields if key in settings},
        "responses": None if responses is None else str(responses),
        "target": _make_target(settings),
        "judge": _make_judge(settings),
        "evaluators": asked,
        "add_evaluators": adds,
        "own_evaluators": tuple(map(_locate, settings.get("own_evaluators", ()))),
        "options": settings.get("options", {}),
        "mapping": settings.get("mapping", {}),
        "selection": {key: settings.get(key) for key in Selection.model_fields},
        "max_errors": str(settings.get("max_errors", "0")),
        "labels": tuple(settings.get("labels", ())),
        "store": str(settings.get("store", DEFAULT_STORE)),
    }
    plain = {"allow_graders_network", "concurrency", "timeout_s", "batch_size", "name"}
    try:
        return RunConfig.model_validate(fields | {k: v for k, v in settings.items() if k in plain})
    except ValidationError as error:
        raise ConfigError(_describe(error)) from error


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


def _locate(place: str) -> str:
    """Write the path of an own evaluator in full, so that every process of a run finds it."""
    return str(Path(place).absolute()) if place else place


def _describe(error: ValidationError) -> str:
    problems = [(each["loc"][-1], each["msg"].removeprefix("Value error, ")) for each in error.errors()]
    return "; ".join(f"{setting}: {problem}" for setting, problem in problems)


def _make_target(settings: Settings) -> dict[str, object]:
    kind = settings.get("target", "openai" if "model" in settings else "stored")
    if kind == "stored":
        _refuse_idle(settings)
        return {"kind": kind}
    if "responses" in settings:
        raise ConfigError("--responses gives stored answers and --model asks for new ones; choose one")
    if "model" not in settings:
        raise ConfigError(f"--target {kind} needs --model MODEL")
    provider = "azure" if kind == "azure" else "openai"
    endpoint = {"model": settings["model"], "provider": provider, "base_url": settings.get("base_url")}
    prompt = _read_prompt(settings.get("prompt_template"))
    return {"kind": kind, "endpoint": endpoint, "system": settings.get("system"), "prompt": prompt}


def _read_prompt(path: str | Path | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--prompt-template {path}: cannot be read: {error}") from error


def _refuse_idle(settings: Settings) -> None:
    """Refuse what stored answers have no use for, since it was meant to do something."""
    idle = [name for name in ("model", "system", "prompt_template") if name in settings]
    if "base_url" in settings and "judge" not in settings:
        idle.append("base_url")
    if idle:
        raise ConfigError(f"stored answers use no {list_names(idle)}; leave it out, or name a --model")


def _make_judge(settings: Settings) -> dict[str, object] | None:
    judge = settings.get("judge")
    if judge is None:
        return None
    base_url = settings.get("judge_base_url", settings.get("base_url"))
    provider = "azure" if judge.startswith("azure:") else "openai"
    return {"model": judge.removeprefix("azure:"), "provider": provider, "base_url": base_url}
