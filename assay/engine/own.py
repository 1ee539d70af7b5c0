"""A user's own evaluators: from Python files, M365 folders and installed packages."""

from __future__ import annotations

import inspect
import logging
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from assay.errors import ConfigError, list_names
from assay.targets.code_files import explain_fault, load_file, shows_secret
from evaluators.catalog import CATALOG, Catalog
from evaluators.contract import FIELDS, ColumnEvaluator, EmbeddingEvaluator, JudgeEvaluator, RowEvaluator
from evaluators.functions import wrap_function
from evaluators.m365_custom import wrap_class
from evaluators.prompt_files import make_judge, parse_prompt_file

if TYPE_CHECKING:
    from types import ModuleType

    from assay.config import RunConfig
    from evaluators.contract import Evaluator

logger = logging.getLogger("assay")
GROUP = "assay.evaluators"
FOLDER = Path("custom-evaluators")


def open_catalog(config: RunConfig) -> Catalog:
    """Return the evaluators that a run may name; the same object for the same files.

    Besides the built-in ones and those of `config.own_evaluators` these are, looked for when they are
    named: entry points of the group `assay.evaluators`, and folders in `./custom-evaluators`.

    Raises:
        ConfigError: A file cannot be loaded, or holds no evaluator of that name.
    """
    return _open(config.own_evaluators)


@lru_cache(maxsize=8)
def _open(places: tuple[str, ...]) -> Catalog:
    own = {place: load_evaluator(place) for place in places}
    names: dict[str, str] = {}
    for place, evaluator in own.items():
        if (first := names.setdefault(evaluator.name, place)) != place:
            raise ConfigError(
                f"--evaluator {place}: {evaluator.name} is also the name of {first}; rename one"
            )
    return Catalog(list(own.values()), _find_more)


def list_own_files(config: RunConfig) -> list[Path]:
    """Return the user's own files, beside the datasets, that decide what a run computes."""
    places = [*config.own_evaluators, *filter(None, [config.panel.canaries])]
    paths = [Path(place.rpartition(":")[0] if ".py:" in place else place) for place in places]
    return [path for path in paths if path.is_file()]


def load_evaluator(place: str) -> Evaluator:
    """Load an evaluator: `FILE.py:NAME`, `FILE.py` with one in it, a prompt file `.md`, or an M365 folder.

    Raises:
        ConfigError: There is no such file, it cannot be loaded, it has no evaluator of that name, or the
            name belongs to a built-in evaluator.
    """
    path, colon, name = place.rpartition(":") if ".py:" in place else (place, "", "")
    source = Path(path)
    if source.suffix == ".md":
        return _check_name(_load_prompt(source), place)
    if source.is_dir():
        return _check_name(_load_folder(source), place)
    module = _load_module(source, place)
    found = {key: value for key, value in vars(module).items() if _is_evaluator(value)}
    if not colon:
        if len(found) != 1:
            names = list_names(found) or "none"
            raise ConfigError(f"--evaluator {place}: name one as {place}:NAME; evaluators there: {names}")
        return _check_name(next(iter(found.values())), place)
    if not hasattr(module, name):
        functions = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        names = list_names([*found, *functions]) or "none"
        raise ConfigError(f"--evaluator {place}: {source} has no {name}; there are: {names}")
    return _check_name(_adapt(getattr(module, name), name, place), place)


def _load_prompt(path: Path) -> Evaluator:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--judge-prompt {path}: cannot be read: {error}") from error
    return make_judge(parse_prompt_file(text, str(path)))


def _is_evaluator(value: object) -> TypeGuard[Evaluator]:
    return isinstance(value, ColumnEvaluator | RowEvaluator | JudgeEvaluator | EmbeddingEvaluator)


def _adapt(value: object, name: str, place: str) -> Evaluator:
    if _is_evaluator(value):
        return value
    if inspect.isclass(value):
        return wrap_class(value, name)
    if callable(value):
        return wrap_function(value, name, where=place)
    raise ConfigError(f"{place}: {name} is neither an evaluator nor a function or class")


def _check_name(evaluator: Evaluator, place: str) -> Evaluator:
    """Refuse a name that is taken, and a description that cannot work."""
    taken = {alias.casefold() for each in CATALOG.evaluators for alias in (each.name, *each.aliases)}
    for name in (evaluator.name, *evaluator.aliases):
        if name.casefold() in taken or ":" in name:
            problem = "holds a colon" if ":" in name else "is that of a built-in evaluator"
            raise ConfigError(f"{place}: the name {name!r} {problem}; give it another")
    _check_members(f"field of {evaluator.name}", (*evaluator.needs, *evaluator.wants), FIELDS, place)
    if isinstance(evaluator, ColumnEvaluator):
        known = tuple(evaluator.options.model_fields)
        _check_members(f"row option of {evaluator.name}", tuple(evaluator.row_options), known, place)
    return evaluator


def _check_members(kind: str, names: tuple[str, ...], known: tuple[str, ...], place: str) -> None:
    for name in names:
        if name not in known:
            raise ConfigError.unknown(kind, name, known, where=place)


def _load_folder(folder: Path) -> Evaluator:
    """Load `folder/NAME.py`, whose first class is the evaluator."""
    name = folder.resolve().name
    if list(folder.glob("*.prompty")):
        raise ConfigError(f"{folder}: evaluators with a .prompty file are not read, only those of code alone")
    module = _load_module(folder / f"{name}.py", str(folder))
    classes = [each for each in vars(module).values() if _is_own_class(each, module)]
    if not classes:
        raise ConfigError(f"{folder / name}.py: no class; the first one is the evaluator")
    return wrap_class(classes[0], name)


def _is_own_class(value: object, module: ModuleType) -> bool:
    return inspect.isclass(value) and value.__module__ == module.__name__


def _load_module(path: Path, place: str) -> ModuleType:
    """Run a Python file as a module of a private name; its folder is not put on the module path."""
    if not path.is_file():
        raise ConfigError(f"--evaluator {place}: no file {path}; accepted are FILE.py:NAME and folders")
    return load_file(path, f"--evaluator {place}")


def _find_more(name: str) -> Evaluator | None:
    """Look for a name among installed packages and in `./custom-evaluators`."""
    for point in entry_points(group=GROUP, name=name):
        place = f"entry point {name} ({point.value})"
        try:
            value = point.load()
        except Exception as error:
            fault = explain_fault(place, error)
            if shows_secret(error):
                raise fault from None
            raise fault from error
        return _check_name(_adapt(value, name, place), place)
    folder = FOLDER / name
    if name.isidentifier() and (folder / f"{name}.py").is_file():
        logger.warning("evaluator %s is not built in: running the code of %s", name, folder)
        return _check_name(_load_folder(folder), str(folder))
    return None
