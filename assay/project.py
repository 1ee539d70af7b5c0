"""The file `assay.toml`: targets and judges under names of the user's own."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from pydantic import ValidationError

from assay.config import Endpoint, Sampling
from assay.contracts.hiding import refuse_secrets
from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

FILE = "assay.toml"
MODELS = ("openai", "azure")  # kinds of targets that a model answers for
PLACES = {"python": "FILE.py:FUNCTION", "cmd": "PROGRAM ARGUMENTS", "http": "FILE.toml"}
KINDS = ("stored", *MODELS, *PLACES)

Table: TypeAlias = "dict[str, object]"

_OWN = ("kind", "place", "system", "prompt_template")
_TARGET_KEYS = (*_OWN, *(key for key in Endpoint.model_fields if key != "provider"), *Sampling.model_fields)
_JUDGE_KEYS = ("model", "provider", "base_url", "api_key_env", "api_version")
_MEANT = {"responses_api": "api", "type": "kind", "url": "base_url", "deployment": "model", "param": "params"}
KEYS_THEMSELVES = {"api_key", "apikey", "key", "token", "secret", "password", "authorization"}


@dataclass(frozen=True, slots=True)
class Project:
    """What the file says, as flat settings of a run.

    Attributes:
        path: The file, as the user named it.
        targets: Settings of each named target.
        judges: Settings of each named judge.
    """

    path: Path
    targets: Mapping[str, Table] = field(default_factory=dict[str, Table])
    judges: Mapping[str, Table] = field(default_factory=dict[str, Table])


def read_project(path: str | Path | None = None) -> Project:
    """Read the file.

    Args:
        path: The file; None: `assay.toml` in the working directory, which need not be there.

    Raises:
        ConfigError: It is not there, is no TOML, or says what nobody understands; the message names table
            and key.
    """
    place = Path(FILE if path is None else path)
    if path is None and not place.exists():
        return Project(place)
    document = _read_toml(place)
    for name in document:
        if name not in {"targets", "judges"}:
            raise ConfigError.unknown("table", name, ["targets", "judges"], where=str(place))
    targets = _read_tables(place, "targets", document, _read_target)
    return Project(place, targets, _read_tables(place, "judges", document, _read_judge))


def _read_toml(path: Path) -> Table:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deeply") from None
    except ValueError as error:  # no UTF-8, or no TOML, and then with line and column
        raise ConfigError(f"{path}: is no TOML: {error}; texts stand in quotes") from error


def _read_tables(
    path: Path, kind: str, document: Table, read: Callable[[Table, str, Path], Table]
) -> dict[str, Table]:
    found: dict[str, Table] = {}
    for name, table in _take_table(document.get(kind, {}), f"{path}: [{kind}]").items():
        where = f"{path}: [{kind}.{name}]"
        if name in KINDS or ":" in name or not name.strip():
            raise ConfigError(f"{where}: this name has a meaning of its own; choose one without a colon")
        found[name] = read(_take_table(table, where), where, path.parent)
    return found


def _take_table(value: object, where: str) -> Table:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: must be a table of keys and values")
    return cast("Table", value)


def _read_target(table: Table, where: str, folder: Path) -> Table:
    """Return the settings that a table of a target stands for."""
    table = _check_keys(table, _TARGET_KEYS, where)
    if isinstance(table.get("stop"), str):
        table["stop"] = [table["stop"]]
    _check_part(Endpoint, {"model": "-", **table}, where)
    _check_part(Sampling, table, where)
    kind, place = table.pop("kind", MODELS[0]), table.pop("place", None)
    if kind not in {*MODELS, *PLACES}:
        raise ConfigError.unknown("kind", str(kind), [*MODELS, *PLACES], where=where)
    if (place is None) != (kind in MODELS):
        wanted = "has no place" if kind in MODELS else f"needs a place: {PLACES[str(kind)]}"
        raise ConfigError(f"{where}: place: a target of kind {kind} {wanted}")
    settings = {"target": kind if place is None else f"{kind}:{_locate(str(kind), str(place), folder)}"}
    if "api" in table:
        settings["responses_api"] = table.pop("api") == "responses"
    if "prompt_template" in table:
        settings["prompt_template"] = folder / str(table.pop("prompt_template"))
    system = table.get("system")
    if isinstance(system, str) and system.startswith("@") and not system.startswith("@@"):
        table["system"] = f"@{folder / system[1:]}"
    return settings | table


def _read_judge(table: Table, where: str, _: Path) -> Table:
    """Return the settings that a table of a judge stands for."""
    table = _check_keys(table, _JUDGE_KEYS, where)
    _check_part(Endpoint, table, where)
    prefix = "azure:" if table.pop("provider", None) == "azure" else ""
    settings: Table = {"judge": f"{prefix}{table.pop('model')}", "judge_base_url": None}
    return settings | {f"judge_{name}": value for name, value in table.items()}


def _check_keys(table: Table, known: tuple[str, ...], where: str) -> Table:
    """Return a copy whose plain values are of the right type; a version is text, whatever TOML reads."""
    for key in table:
        if key.lower().replace("-", "_") in KEYS_THEMSELVES:
            raise ConfigError(
                f"{where}: {key}: no secret stands in this file; put the key into an environment variable "
                'and name that: api_key_env = "OPENAI_API_KEY"'
            )
        if key not in known:
            aliases = {alias: key for alias, key in _MEANT.items() if key in known}
            raise ConfigError.unknown("key", key, known, where=where, aliases=aliases)
    refuse_secrets(table, where)
    for key in _OWN:
        if key in table and not isinstance(table[key], str):
            raise ConfigError(f"{where}: {key}: must be a text")
    version = table.get("api_version")
    if isinstance(version, date | int | float) and not isinstance(version, bool):
        return {**table, "api_version": str(version)}
    return dict(table)


def _check_part(model: type[BaseModel], table: Table, where: str) -> None:
    """Check the keys of a table that belong to a part of the configuration."""
    try:
        model.model_validate({key: value for key, value in table.items() if key in model.model_fields})
    except ValidationError as error:
        first = error.errors()[0]
        problem = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{where}: {first['loc'][0]}: {problem}") from error


def _locate(kind: str, place: str, folder: Path) -> str:
    """Take a path as relative to the file that names it; a command is one of the working directory."""
    return place if kind == "cmd" or is_module(kind, place) else str(folder / place)


def is_module(kind: str, place: str) -> bool:
    """Whether a place is `MODULE:FUNCTION`, and names no file."""
    return kind == "python" and not place.rpartition(":")[0].endswith(".py")
