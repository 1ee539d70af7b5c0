"""Files of code that users bring: run as modules of private names, and hashed."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from typing import TYPE_CHECKING

from assay.contracts.hiding import find_secrets
from assay.contracts.json_text import sha_text
from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import ModuleType

MOST_HASHED = 64 << 20  # bytes; of larger files, such as the weights of a model, the size will do

_SHA = "__assay_sha256__"


def load_file(path: Path, where: str) -> ModuleType:
    """Run a Python file as a module of a private name; its folder is not put on the module path.

    A file that was run and has not changed since is not run again.

    Args:
        path: The file, which exists.
        where: Names it in messages.

    Raises:
        ConfigError: It is no Python file, or cannot be loaded.
    """
    name = f"_assay_own_{sha_text(str(path.resolve()))[:16]}"
    known, sha256 = sys.modules.get(name), read_sha([path])
    if known is not None and getattr(known, _SHA, None) == sha256:
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{where}: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    setattr(module, _SHA, sha256)
    sys.modules[name] = module  # dataclasses and type hints look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        fault = explain_fault(str(path), error)
        if shows_secret(error):
            raise fault from None
        raise fault from error
    return module


def load_module(name: str, where: str) -> ModuleType:
    """Import an installed module.

    Args:
        name: Its name, with dots.
        where: Names it in messages.

    Raises:
        ConfigError: There is none, or it cannot be loaded.
    """
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        fault = explain_fault(f"{where}: {name}", error)
        if shows_secret(error):
            raise fault from None
        raise fault from error


def explain_fault(where: str, error: BaseException) -> ConfigError:
    """Return the error of code that cannot be loaded, without secrets of the environment."""
    return ConfigError(find_secrets().hide(f"{where}: cannot be loaded: {type(error).__name__}: {error}"))


def shows_secret(error: BaseException) -> bool:
    """Whether what code raised, or what caused that, shows a secret of the environment in its traceback."""
    told = "".join(traceback.format_exception(error))
    return find_secrets().hide(told) != told


def read_sha(paths: Iterable[Path]) -> str:
    """Return the SHA-256 over the contents of files, in order, as 64 hex digits."""
    digest = hashlib.sha256()
    for path in paths:
        size = path.stat().st_size
        digest.update(b"%d:" % size)
        if size <= MOST_HASHED:
            digest.update(path.read_bytes())
    return digest.hexdigest()
