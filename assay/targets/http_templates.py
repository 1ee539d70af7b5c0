"""Templates of requests: texts with placeholders such as `{{query}}` or `{{item.user.id}}`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from assay.contracts.json_text import dump_json
from assay.errors import ConfigError
from assay.targets.json_paths import JsonPath, parse_path
from assay.targets.offers import OFFERED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from assay.contracts.json_text import JsonValue

CONVERSATION = "conversation_id"
PLACEHOLDERS = (*OFFERED, CONVERSATION)

_PART = re.compile(r"\\(?P<plain>\{\{)|\{\{(?P<path>(?:[^}\"]|\"(?:[^\"\\]|\\.)*\")*)\}\}|(?P<broken>\{\{)")


@dataclass(frozen=True, slots=True)
class Template:
    """A text with placeholders.

    Attributes:
        parts: Literal texts, and paths that begin with a name of `PLACEHOLDERS`.
    """

    parts: tuple[str | JsonPath, ...]

    @property
    def roots(self) -> frozenset[str]:
        """Names that it reads."""
        return frozenset(str(part.steps[0]) for part in self.parts if isinstance(part, JsonPath))

    def map_texts(self, change: Callable[[str], str]) -> Template:
        """Return the template with its literal texts changed."""
        return Template(tuple(change(part) if isinstance(part, str) else part for part in self.parts))


class Filler:
    """Puts what a turn offers into templates.

    Attributes:
        missing: Placeholders that the turn has nothing for, as they were written.
    """

    def __init__(self, offers: Mapping[str, JsonValue]) -> None:
        self.missing: list[str] = []
        self._offers = dict(offers)

    def fill_text(self, template: Template, *, safe: str | None = None) -> str:
        """Return the text; values that are no text are written as JSON, null as nothing.

        Args:
            template: What to fill.
            safe: Characters beside letters, digits and `_.-~` that values may have in a URL or header,
                where others are percent-encoded; None: any.
        """
        texts: list[str] = []
        for part in template.parts:
            text = part if isinstance(part, str) else _write(self._find(part))
            encoded = safe is not None and isinstance(part, JsonPath)
            texts.append(quote(text, safe=safe or "", errors="replace") if encoded else text)
        return "".join(texts)

    def fill_value(self, value: JsonValue, where: str) -> JsonValue:
        """Return a JSON value with its texts filled; a text that is one placeholder gets a JSON value."""
        if isinstance(value, dict):
            return {key: self.fill_value(member, where) for key, member in value.items()}
        if isinstance(value, list):
            return [self.fill_value(member, where) for member in value]
        if not isinstance(value, str):
            return value
        template = parse_template(value, where)
        only = template.parts[0] if len(template.parts) == 1 else None
        return self._find(only) if isinstance(only, JsonPath) else self.fill_text(template)

    def _find(self, path: JsonPath) -> JsonValue:
        found = path.find_all(self._offers)
        if not found and not path.is_many:
            self.missing.append(f"{{{{{path.text}}}}}")
            return None
        return found if path.is_many else found[0]


@lru_cache(maxsize=512)
def parse_template(text: str, where: str) -> Template:
    r"""Parse a template; `\{{` stands for two braces.

    Args:
        text: The template.
        where: Names it in messages.

    Raises:
        ConfigError: A placeholder is malformed, or begins with an unknown name.
    """
    parts: list[str | JsonPath] = []
    literal, position = "", 0
    for match in _PART.finditer(text):
        literal += text[position : match.start()] + (match["plain"] or "")
        position = match.end()
        if match["plain"]:
            continue
        if match["broken"]:
            shown = text[match.start() : match.start() + 40]
            raise ConfigError(f"{where}: malformed placeholder at {shown!r}; write {{{{item.field}}}}")
        path = parse_path(match["path"], where)
        if not path.steps or path.steps[0] not in PLACEHOLDERS:
            raise ConfigError.unknown("placeholder", match["path"].strip(), PLACEHOLDERS, where=where)
        parts += [literal, path] if literal else [path]
        literal = ""
    literal += text[position:]
    return Template((*parts, literal) if literal or not parts else tuple(parts))


def list_templates(value: JsonValue, where: str) -> Iterator[Template]:
    """Yield the templates in a JSON value.

    Raises:
        ConfigError: As `parse_template`.
    """
    if isinstance(value, str):
        yield parse_template(value, where)
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from list_templates(member, where)


def quote_loose(text: str) -> str:
    """Return JSON text whose placeholders outside of strings have become strings, so that it is JSON."""
    parts: list[str] = []
    position, inside = 0, False
    for match in re.finditer(r'\\.|"|\{\{(?:[^}"]|"[^"]*")*\}\}', text, re.DOTALL):
        piece = match.group()
        inside ^= piece == '"'
        if not inside and piece.startswith("{{"):
            parts += [text[position : match.start()], dump_json(piece)]
            position = match.end()
    return "".join((*parts, text[position:]))


def _write(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else dump_json(value)
