"""Secrets: texts that no message, file or log may show."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast
from urllib.parse import quote

from assay.contracts.json_text import dump_json
from assay.errors import ConfigError

SHORTEST = 8  # shorter values (`none`, `EMPTY`) are placeholders, and would be found everywhere
SECRET_NAME = re.compile(
    r"key|token|secret|passw|credential|auth(?!or(?!i))|cookie|signature|^sig$|^code$", re.IGNORECASE
)
JWT = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")
OF_SERVER = re.compile(r"(https?://)?[\w-]+(\.[\w-]+)*(\.[a-z]{2,10}|\.\d+|localhost|:\d+)(:\d+)?(/[^?@]*)?")
OPAQUE = re.compile(r"(?=.*\d)[^\s]{16,}")
KEY_FORM = re.compile(rf"(?<![\w-])sk-(?:[\w-]*[-_])?(?=[A-Za-z]*\d)[A-Za-z0-9]{{16,}}[\w-]*|{JWT.pattern}")
_SPARED = frozenset(
    {
        "system",
        "prompt",
        "prompt_template",
        "mapping",
        "options",
        "where",
        "datasets",
        "api_key_env",
        "judge_api_key_env",
    }
)
"""Settings that may speak of keys, or have a check of their own; values of variables are refused too."""


class Secrets:
    """Texts to hide, in the spellings of plain text, JSON, HTML and URLs; its representation shows none."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Keep those that are long enough to be secrets."""
        kept = {text for text in texts if len(text) >= SHORTEST}
        self._spelt = _spell(kept)
        self.in_data = _spell(text for text in kept if is_opaque(text))
        """What no data holds by chance; words such as `password` or `lm-studio` are not there."""

    def __repr__(self) -> str:
        return f"Secrets({len(self._spelt)})"

    def hide(self, text: str) -> str:
        """Return a message with every secret replaced by `***`."""
        for spelling in self._spelt:
            text = text.replace(spelling, "***")
        return text

    def hide_in_data(self, text: str) -> str:
        """Return an answer with every secret replaced by `***` that it cannot hold by chance."""
        for spelling in self.in_data:
            if spelling in text:
                text = text.replace(spelling, "***")
        return text


def is_opaque(text: str) -> bool:
    """Whether a text can be nothing but a key: long, with a digit, without blanks, and no address."""
    return OPAQUE.fullmatch(text) is not None and OF_SERVER.fullmatch(text) is None


def find_secrets() -> Secrets:
    """Return the values of the environment variables whose names say that they are secrets."""
    return Secrets(_list_variables().values())


def hide_shown(text: str) -> str:
    """Return what a user is to see without secrets of the environment, keys by their form, and passwords."""
    plain = re.sub(r"://[^/\s@]*@", "://***@", find_secrets().hide(text))
    return KEY_FORM.sub("***", plain)


def refuse_secrets(settings: Mapping[str, object], where: str = "") -> None:
    """Refuse settings that hold a secret, since they are stored; the message does not repeat it.

    Args:
        settings: Values by name, nested as they like.
        where: Place of the settings, for the message.

    Raises:
        ConfigError: The value of a variable that is a secret stands in one, or what has the form of a key.
    """
    known = {name: Secrets([value]).in_data for name, value in _list_variables().items()}
    for setting, text, is_prose in _list_texts("", settings, is_prose=False):
        named = [name for name, spellings in known.items() if any(each in text for each in spellings)]
        if not named and (is_prose or not KEY_FORM.search(text)):
            continue
        what = f"the value of the variable {named[0]}" if named else "what looks like a key"
        place = f"{where}: {setting}" if where else setting
        raise ConfigError(
            f"{place}: holds {what}, and settings are stored; leave it in an environment variable "
            "and name that: api_key_env, or ${NAME} in the TOML file of a service; it is not repeated here"
        )


def _list_variables() -> dict[str, str]:
    """Return the variables that are secrets; the path of a file of secrets is none."""
    named = {name: value.strip() for name, value in os.environ.items() if SECRET_NAME.search(name)}
    return {name: value for name, value in named.items() if not _is_path(value)}


def _is_path(text: str) -> bool:
    with suppress(OSError, ValueError):
        return "/" in text and Path(text).exists()
    return False


def _list_texts(name: str, value: object, *, is_prose: bool) -> Iterable[tuple[str, str, bool]]:
    """Yield every text with the name it stands under, and whether it may speak of keys."""
    if isinstance(value, Mapping):
        for key, each in cast("Mapping[str, object]", value).items():
            yield name, key, is_prose
            yield from _list_texts(key, each, is_prose=is_prose or key in _SPARED)
    elif isinstance(value, list | tuple):
        for each in cast("Iterable[object]", value):
            yield from _list_texts(name, each, is_prose=is_prose)
    elif isinstance(value, str | Path):
        yield name, str(value), is_prose


def _spell(texts: Iterable[str]) -> list[str]:
    """Return the spellings of texts, longest first: one may stand in another."""
    spelt: set[str] = set()
    for text in texts:
        spelt |= {text, dump_json(text)[1:-1], quote(text, safe=""), html.escape(text)}
    return sorted(spelt, key=len, reverse=True)
