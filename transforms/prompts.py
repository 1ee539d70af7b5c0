"""Prompts: the messages that are sent for a row, rendered from templates or found in the row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from assay.contracts.json_text import JsonValue, dump_json, parse_json
from assay.errors import ConfigError, list_names
from transforms.rendering import fill_columns, list_references, render
from transforms.templates import Template, parse_template
from transforms.values import encode_text, read_json, read_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transforms.templates import Reference

JsonObject: TypeAlias = "dict[str, JsonValue]"

ROLES = ("system", "developer", "user", "assistant")
TEXT_TYPES = ("input_text", "text", "output_text")
ACCEPTED = (
    "accepted are a text, a list of messages with role and content, "
    '{"type": "template", "template": [messages]} and '
    '{"type": "item_reference", "item_reference": "item.FIELD"}'
)


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message: who speaks, and the template of the text."""

    role: str
    text: Template


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent for a row: messages, or those that the row itself holds.

    Attributes:
        messages: Templates, in order.
        found: The place of the row's own messages; `messages` is empty then.
    """

    messages: tuple[PromptMessage, ...]
    found: Reference | None = None

    @property
    def templates(self) -> Mapping[str, Template]:
        """The templates by place, for `FieldCheck(prompt.templates, has_target=False, what="prompt")`."""
        if self.found is not None:
            return {"item_reference": Template((self.found,))}
        return {f"message {place}": message.text for place, message in enumerate(self.messages, start=1)}


def parse_prompt(source: JsonValue, *, where: str = "prompt") -> Prompt:
    """Read a prompt.

    A text is one message of the user, unless it is JSON of one of the other forms: a list of messages, or
    the `input_messages` of a Foundry data source (`type` is `template` or `item_reference`).

    Args:
        source: A text, or JSON that was parsed.
        where: Names the prompt in messages.

    Raises:
        ConfigError: The form, a role, a content or a placeholder is not accepted; an empty prompt.
    """
    if isinstance(source, str):
        parsed = _parse_form(source)
        if parsed is None:
            return Prompt((PromptMessage("user", _parse_text(source, where)),))
        source = parsed
    if isinstance(source, dict) and source.get("type") == "item_reference":
        return _parse_reference(source, where)
    entries, place = source, where
    if isinstance(source, dict) and source.get("type") == "template":
        entries, place = source.get("template"), f"{where}.template"
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{place}: no messages; {ACCEPTED}")
    return Prompt(tuple(_parse_message(entry, f"{place}[{n}]") for n, entry in enumerate(entries)))


def render_prompt(prompt: Prompt, rows: pl.DataFrame) -> pl.DataFrame:
    """Write the messages of each row, in one pass: inserted text is never read again.

    Args:
        prompt: What to send.
        rows: ITEMS columns.

    Returns:
        `messages_json` (compact JSON; those of the prompt in chat-completions form, those of a row as they
        stand there), and `error_code`, `error_message`: `missing_field` where a placeholder has no value,
        `bad_messages` where a row holds no list of messages. A row with an error has no messages.
    """
    if prompt.found is None:
        texts = read_texts(rows, list_references(message.text for message in prompt.messages))
        pieces: list[pl.Expr] = []
        for place, message in enumerate(prompt.messages):
            opening = "[" if place == 0 else "},"
            pieces.append(pl.lit(f'{opening}{{"role":{dump_json(message.role)},"content":'))
            pieces.append(encode_text(render(message.text).fill_null("")))
        written = pl.concat_str(*pieces, pl.lit("}]"))
        filled = fill_columns(rows, {"messages_json": written}, texts, {})
    else:
        typed = read_json(rows, [prompt.found])
        filled = fill_columns(rows, {"messages_json": pl.col(f"#{prompt.found}")}, {}, typed)
        filled = _refuse_others(filled, str(prompt.found))
    return filled.with_columns(pl.when(pl.col("error_code").is_null()).then("messages_json"))


def _parse_form(text: str) -> JsonValue:
    """Return JSON that is a prompt by its form; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = parse_json(text)
    except ValueError:
        return None
    if isinstance(value, dict):
        return value if value.keys() & {"template", "item_reference"} else None
    return value if any("role" in entry for entry in _list_objects(value)) else None


def _parse_reference(source: JsonObject, where: str) -> Prompt:
    name = source.get("item_reference")
    template = _parse_text(f"{{{{{name}}}}}", f"{where}.item_reference") if isinstance(name, str) else None
    if template is None or template.sole is None:
        raise ConfigError(f'{where}.item_reference: not a field of the item; write "item.FIELD"')
    return Prompt((), template.sole)


def _parse_message(entry: JsonValue, where: str) -> PromptMessage:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: not a message; write an object with role and content")
    unknown = [key for key in entry if key not in {"type", "role", "content"}]
    if unknown or entry.get("type", "message") != "message":
        shown = unknown[0] if unknown else f"type {entry['type']}"
        raise ConfigError(f"{where}: {shown} is not accepted; a message has role and content, type message")
    role = entry.get("role")
    if role not in ROLES:
        raise ConfigError(f"{where}.role: {role} is not accepted; accepted are {list_names(ROLES)}")
    texts = _list_texts(entry.get("content"), f"{where}.content")
    return PromptMessage(str(role), _parse_text("\n".join(texts), where))


def _list_texts(content: JsonValue, where: str) -> list[str]:
    items = content if isinstance(content, list) else [content]
    texts = [_read_item(item) for item in items]
    known = [text for text in texts if text is not None]
    if not known or len(known) < len(texts):
        raise ConfigError(
            f'{where}: only text is accepted: "...", {{"type": "input_text", "text": "..."}} or a list'
        )
    return known


def _read_item(item: JsonValue) -> str | None:
    if isinstance(item, dict):
        item = item.get("text") if item.get("type") in TEXT_TYPES else None
    return item if isinstance(item, str) else None


def _parse_text(text: str, where: str) -> Template:
    template = parse_template(text, where=where)
    if not text.strip():
        raise ConfigError(f"{where}: the text is empty")
    if any(reference.root == "sample" for reference in template.references):
        raise ConfigError(f"{where}: sample.* is the answer, which a prompt comes before; write item.*")
    return template


def _refuse_others(filled: pl.DataFrame, name: str) -> pl.DataFrame:
    """Make an error of every row whose own messages are none."""
    listed = [text is None or _holds_messages(text) for text in filled["messages_json"]]
    bad = ~pl.Series(listed, dtype=pl.Boolean)
    message = f"{name} is no list of messages, objects with a role"
    return filled.with_columns(
        error_code=pl.when(bad).then(pl.lit("bad_messages")).otherwise("error_code"),
        error_message=pl.when(bad).then(pl.lit(message)).otherwise("error_message"),
    )


def _holds_messages(text: str) -> bool:
    value = parse_json(text)
    objects = _list_objects(value)
    whole = isinstance(value, list) and 0 < len(value) == len(objects)
    return whole and all("role" in entry or "type" in entry for entry in objects)


def _list_objects(value: JsonValue) -> list[JsonObject]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
