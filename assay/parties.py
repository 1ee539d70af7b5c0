"""The parties of a run, from flat settings: who answers and who judges."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.config import Sampling
from assay.contracts.json_text import NonFiniteError, dump_json
from assay.errors import ConfigError, list_names
from assay.project import KEYS_THEMSELVES, KINDS, MODELS, PLACES, is_module, read_project

if TYPE_CHECKING:
    from assay.settings import Settings

    Fields = dict[str, object]

SERVER = ("base_url", "api_version", "api_key_env")  # also the judge's, when it names none of its own
SAMPLING = tuple(Sampling.model_fields)
_ASKING = ("model", "responses_api", "stream", *SAMPLING)  # what only a model has a use for
_SECRET = re.compile(r"(?=.*\d)(?=.*[a-z]|[^_]*$).{16,}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_PARAMS = {"model", "stream", *SAMPLING}  # they have options of their own
_SET_BY_US = {"messages", "input", "instructions"}


def expand_names(settings: Settings) -> Settings:
    """Put what `assay.toml` says in the place of the names of a target and a judge; what is given wins.

    Raises:
        ConfigError: There is no such name, or the file is wrong.
    """
    if not settings.keys() & {"target", "judge", "config"}:
        return settings
    project = read_project(settings.get("config"))
    given: Fields = dict(settings)
    named: Fields = {}
    target, judges = settings.get("target", "stored"), _list_judges(settings)
    judge, *jury = judges or [""]
    if judge:
        given["judge"] = judge
    if target.partition(":")[0] not in KINDS:
        if target not in project.targets:
            raise _refuse_target(target, list(project.targets), project.path)
        named |= project.targets[target]
        del given["target"]
    if judge in project.judges:
        named |= project.judges[judge]
        del given["judge"]
    own = {name: value for name, value in given.items() if name.startswith("judge_")}
    given["jury"] = [{**project.judges.get(each, {"judge": each}), **own} for each in jury]
    if "params" in named and "params" in settings:
        given["params"] = {**cast("Fields", named["params"]), **settings["params"]}
    return cast("Settings", named | given)


def _list_judges(settings: Settings) -> list[str]:
    asked = settings.get("judge", [])
    return [asked] if isinstance(asked, str) else [*asked]


def make_target(settings: Settings) -> Fields:
    """Return the target as `RunConfig` takes it.

    Raises:
        ConfigError: It cannot work, or something was set that it has no use for.
    """
    _check_variable("api_key_env", settings.get("api_key_env"))
    asked = settings.get("target", "openai" if "model" in settings else "stored")
    kind, colon, place = asked.partition(":")
    if kind not in PLACES and colon:
        raise ConfigError(f"target {asked!r}: write --target {kind} --model {place or 'MODEL'}")
    if kind != "stored" and "responses" in settings:
        raise ConfigError("--responses gives stored answers and --model asks for new ones; choose one")
    if kind not in MODELS:
        _refuse_idle(kind, settings)
        if kind == "stored":
            return {"kind": kind}
        found: Fields = {"place": place, "place_sha256": _hash_place(kind, place)}
    else:
        found = {"endpoint": _make_endpoint(kind, settings), "sampling": _make_sampling(settings)}
    system, prompt = _read_system(settings.get("system")), _read_prompt(settings.get("prompt_template"))
    return {"kind": kind, **found, "system": system, "prompt": prompt}


def make_judge(settings: Settings) -> Fields | None:
    """Return the judge as `RunConfig` takes it; None: there is none.

    Raises:
        ConfigError: Something was set that belongs to a judge, and there is none.
    """
    own = {name: value for name in SERVER if (value := settings.get(f"judge_{name}")) is not None}
    _check_variable("judge_api_key_env", settings.get("judge_api_key_env"))
    judge = settings.get("judge")
    if judge is None:
        if own:
            names = list_names(f"judge_{name}" for name in own)
            raise ConfigError(f"without a judge there is no use for {names}; name a --judge")
        return None
    provider, model = _split_judge(judge if isinstance(judge, str) else judge[0])
    shared = {name: settings.get(name) for name in SERVER} if _shares(settings) else {}
    return {"model": model, "provider": provider, **shared, **own}


def make_panel(settings: Settings) -> Fields:
    """Return repeats, jury and canaries as `RunConfig` takes them.

    Raises:
        ConfigError: Something was set that belongs to a judge, and there is none.
    """
    names = {"repeats": "judge_repeats", "vote": "judge_vote", "canaries": "canaries"}
    given: Fields = dict(settings)
    panel = {field: given[name] for field, name in names.items() if name in given}
    if panel and "judge" not in settings:
        idle = list_names(name for name in names.values() if name in given)
        raise ConfigError(f"without a judge there is no use for {idle}; name a --judge")
    shared = {name: value for name, value in given.items() if not name.startswith("judge_")}
    jury = [make_judge(cast("Settings", {**shared, **each})) for each in settings.get("jury", ())]
    if "judge_vote" in settings and not jury:
        raise ConfigError("judge_vote: one judge needs no vote; name several with --judge")
    return panel | {"jury": jury}


def make_embeddings(settings: Settings) -> Fields | None:
    """Return the embedding model as `RunConfig` takes it; None: there is none.

    Raises:
        ConfigError: Something was set that belongs to an embedding model, and there is none.
    """
    own = {name: value for name in SERVER if (value := settings.get(f"embedding_{name}")) is not None}
    _check_variable("embedding_api_key_env", settings.get("embedding_api_key_env"))
    model = settings.get("embedding_model")
    if model is None:
        if own:
            names = list_names(f"embedding_{name}" for name in own)
            raise ConfigError(f"without an embedding model there is no use for {names}")
        return None
    provider, name = _split_judge(model)
    shared = {name: settings.get(name) for name in SERVER} if _shares_vectors(settings) else {}
    return {"model": name, "provider": provider, **shared, **own}


def _split_judge(judge: str) -> tuple[str, str]:
    """Return provider and model."""
    return ("azure", judge.removeprefix("azure:")) if judge.startswith("azure:") else ("openai", judge)


def _shares(settings: Settings) -> bool:
    """Whether the judge is at the server that the target is at, or at the one that only it can mean.

    A judge elsewhere never gets the target's key.
    """
    if "judge" not in settings or "judge_base_url" in settings:
        return False
    kind = _name_kind(settings)
    return kind not in MODELS or kind == _split_judge(_list_judges(settings)[0])[0]


def _shares_vectors(settings: Settings) -> bool:
    """Whether the embedding model is at the server that the target is at; without a target, at that named."""
    model = settings.get("embedding_model")
    if model is None or "embedding_base_url" in settings:
        return False
    return _name_kind(settings) in {_split_judge(model)[0], "stored"}


def _name_kind(settings: Settings) -> str:
    return settings.get("target", "openai" if "model" in settings else "stored")


def _refuse_target(target: str, names: list[str], path: Path) -> ConfigError:
    for kind, part in (("python", ".py"), ("http", ".toml")):
        if part in target:
            return ConfigError(f"target {target!r}: write {kind}:{PLACES[kind]}, such as {kind}:{target}")
    forms = [f"{kind}:{PLACES[kind]}" if kind in PLACES else kind for kind in KINDS]
    where = str(path) if names else ""
    aliases = {kind: f"{kind}:{form}" for kind, form in PLACES.items()}
    return ConfigError.unknown("target", target, [*forms, *names], where=where, aliases=aliases)


def _refuse_idle(kind: str, settings: Settings) -> None:
    """Refuse what a target that is no model has no use for, since it was meant to do something."""
    names = [*_ASKING, *(() if _shares(settings) or _shares_vectors(settings) else SERVER)]
    if kind == "stored":
        names += ["system", "prompt_template", *(["trials"] if settings.get("trials") != 1 else [])]
    idle = [name for name in names if _says(settings.get(name))]
    if idle and kind == "stored":
        raise ConfigError(f"stored answers use no {list_names(idle)}; leave it out, or name a --model")
    if idle:
        raise ConfigError(f"--target {kind}:… has no use for {list_names(idle)}; leave it out")


def _says(value: object) -> bool:
    """Whether a value was meant to do something; zero is, an empty list is not."""
    return value is not None and value is not False and value not in ([], (), {})


def _make_endpoint(kind: str, settings: Settings) -> Fields:
    if "model" not in settings:
        raise ConfigError(f"--target {kind} needs --model MODEL")
    responses = settings.get("responses_api", False)
    for name in ("seed", "stop"):
        if responses and _says(settings.get(name)):
            raise ConfigError(f"{name}: the responses API has none; leave it or --responses-api out")
    api = "responses" if responses else "chat"
    server = {name: settings.get(name) for name in SERVER}
    model = settings["model"]
    return {"model": model, "provider": kind, **server, "api": api, "stream": settings.get("stream", False)}


def _make_sampling(settings: Settings) -> Fields:
    for name, value in settings.get("params", {}).items():
        if name in _NO_PARAMS:
            raise ConfigError(f"param {name!r}: has an option of its own: --{name.replace('_', '-')}")
        if name.lower().replace("-", "_") in KEYS_THEMSELVES:
            raise ConfigError(f"param {name!r}: settings are stored, so no secret is one; see --api-key-env")
        if name in _SET_BY_US:
            raise ConfigError(f"param {name!r}: is made of the item; see --system and --prompt-template")
        try:
            dump_json(value)
        except (NonFiniteError, TypeError) as error:
            raise ConfigError(f"param {name!r}: {error}") from error
    given: Fields = {name: settings.get(name) for name in SAMPLING if name in settings}
    stop = settings.get("stop")
    return given | {"stop": [stop]} if isinstance(stop, str) else given


def _check_variable(setting: str, name: str | None) -> None:
    """Refuse a key where the name of its variable is due, without repeating it."""
    if name is None:
        return
    pasted = name not in os.environ and _SECRET.fullmatch(name) is not None
    if pasted or not _VARIABLE.fullmatch(name):
        raise ConfigError(
            f"{setting}: must be the name of an environment variable that holds the key, such as "
            "OPENAI_API_KEY; what was given is no such name, perhaps the key itself, and is not repeated here"
        )


def _hash_place(kind: str, place: str) -> str | None:
    """Return the hash of the file that a place names; None: it names none."""
    path, colon, name = place.rpartition(":") if kind == "python" else (place, ":", "-")
    if not (path.strip() and colon and name):
        raise ConfigError(f"--target {kind}:{place}: write {kind}:{PLACES[kind]}")
    if kind == "cmd" or is_module(kind, place):
        return None
    return hashlib.sha256(_read_bytes(f"--target {kind}:{place}", path)).hexdigest()


def _read_system(text: str | None) -> str | None:
    """Return the system message: a text, or that of a file behind `@`; `@@` begins a text with `@`."""
    if text is None or not text.startswith("@"):
        return text
    return text[1:] if text.startswith("@@") else _read_text("--system", text[1:])


def _read_prompt(path: str | Path | None) -> str | None:
    return None if path is None else _read_text("--prompt-template", path)


def _read_text(option: str, path: str | Path) -> str:
    try:
        return _read_bytes(option, path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{option} {path}: cannot be read: {error}") from error


def _read_bytes(option: str, path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a path may hold characters that none can have
        problem = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{option}: {path} cannot be read: {problem}") from error
