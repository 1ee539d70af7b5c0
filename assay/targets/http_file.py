"""The TOML file of an HTTP target: how a service is asked, and where its answers hold what."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from assay.contracts.hiding import KEY_FORM, SECRET_NAME, Secrets, is_opaque
from assay.contracts.json_text import dump_json, parse_json, sha_text
from assay.errors import ConfigError
from assay.targets.http_templates import PLACEHOLDERS, Template, list_templates, parse_template, quote_loose
from assay.targets.json_paths import JsonPath, parse_path
from assay.targets.replies import COUNT_KEYS, OTHER_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.contracts.json_text import JsonValue

    Table = Mapping[str, Any]

V = TypeVar("V")
KEYS = ("url", "method", "headers", "body", "response", "stream")
METHODS = ("POST", "GET", "PUT", "PATCH")
RESPONSE_KEYS = ("output_text", *OTHER_KEYS, *COUNT_KEYS)
STREAM_KEYS = ("format", "delta", "done")
END_MARK = "[DONE]"
MINIMAL: dict[str, JsonValue] = {name: f"{{{{{name}}}}}" for name in PLACEHOLDERS if name != "system"}
"""The body where a file names none."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}?")
_WITH_HOST = re.compile(r"https?://[^/?#]+[/?#]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Stream:
    """How a service answers in pieces.

    Attributes:
        delta: Path of the text in an event; None: its usual places.
        done: Data of the event that ends an answer.
        is_marked: Whether an answer without that event is cut off.
    """

    delta: JsonPath | None = None
    done: str = END_MARK
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class HttpFile:
    """A checked file; its representation shows no secret.

    Attributes:
        place: The file, as the user named it.
        sha256: Hash of its text.
        method: HTTP method.
        shown_url: The URL as it is written, for messages and records; secrets in it are `***`.
        url: The URL with the environment in it.
        headers: Headers, with the environment in them.
        variables: Environment variables that it names.
        body: JSON with placeholders in its texts; None: there is no body.
        paths: Places in the answer, by names of `RESPONSE_KEYS`; none: their usual places.
        stream: How the answer comes in pieces; None: it comes whole.
        secrets: What no message may show.
    """

    place: str
    sha256: str
    method: str
    shown_url: Template
    url: Template = field(repr=False)
    headers: Mapping[str, Template] = field(repr=False)
    variables: tuple[str, ...]
    body: JsonValue
    paths: Mapping[str, JsonPath]
    stream: Stream | None
    secrets: Secrets

    @property
    def roots(self) -> frozenset[str]:
        """Names of what the request is made of."""
        templates = [self.url, *self.headers.values(), *list_templates(self.body, self.place)]
        return frozenset[str]().union(*(each.roots for each in templates))


def read_http_file(place: str) -> HttpFile:
    """Read and check the file of an HTTP target, with the environment variables that it names.

    Raises:
        ConfigError: The file is not there or no TOML, has an unknown key, a malformed template or path,
            or names a variable that is not set.
    """
    text = _read_text(place)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{place}: not TOML: {error}") from None
    _check_keys(table, KEYS, place)
    values = _Environment()
    shown_url = parse_template(_get(table, "url", str, place, None), f"{place}: url")
    url = shown_url.map_texts(lambda part: values.expand(part, f"{place}: url"))
    _check_url(url, f"{place}: url")
    headers, written = _read_headers(table, place, values)
    method = _get(table, "method", str, place, "POST").upper()
    if method not in METHODS:
        raise ConfigError.unknown("method", method, METHODS, where=place)
    found = [*values.known.values(), *_list_secrets(written.items()), *_list_secrets(_list_query(url))]
    body = _read_body(table, method, f"{place}: body")
    secrets = Secrets([*found, *_list_body_secrets(body)])
    return HttpFile(
        place=place,
        sha256=sha_text(text),
        method=method,
        shown_url=shown_url.map_texts(secrets.hide),
        url=url,
        headers=headers,
        variables=tuple(values.known),
        body=body,
        paths=_read_paths(table, f"{place}: [response]"),
        stream=_read_stream(table, f"{place}: [stream]"),
        secrets=secrets,
    )


class _Environment:
    """The variables that a file names."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def expand(self, text: str, where: str) -> str:
        """Return the text with `${NAME}` replaced; messages show no value."""

        def look_up(match: re.Match[str]) -> str:
            name = match[1]
            value = os.environ.get(name, "").strip() if match.group().endswith("}") else ""
            if not value:
                raise ConfigError(f"{where}: the environment variable {name!r} is not set")
            if not (value.isascii() and value.isprintable()):
                raise ConfigError(f"{where}: the value of {name} holds characters that cannot be sent")
            self.known[name] = value
            return value

        return _VARIABLE.sub(look_up, text)


def _read_text(place: str) -> str:
    try:
        return Path(place).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"--target http:{place}: {error.strerror}; accepted: http:FILE.toml") from None
    except UnicodeDecodeError:
        raise ConfigError(f"--target http:{place}: not UTF-8 text; accepted: http:FILE.toml") from None


def _read_headers(
    table: Table, place: str, values: _Environment
) -> tuple[dict[str, Template], dict[str, str]]:
    """Return the headers as templates, and as they are written."""
    written: dict[str, str] = {}
    headers: dict[str, Template] = {}
    for name in _get(table, "headers", dict, place, {}):
        where = f"{place}: [headers] {name}"
        if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII):
            raise ConfigError(f"{where}: no name of a header")
        written[name] = _get(table["headers"], name, str, where, None)
        if not (written[name].isascii() and written[name].isprintable()):
            raise ConfigError(f"{where}: a value holds ASCII characters alone, on one line")
        template = parse_template(written[name], where)
        headers[name] = template.map_texts(lambda part, where=where: values.expand(part, where))
    return headers, written


def _read_body(table: Table, method: str, where: str) -> JsonValue:
    told: object = table.get("body", None if method == "GET" else MINIMAL)
    try:
        body = parse_json(quote_loose(told)) if isinstance(told, str) else parse_json(dump_json(told))
    except (TypeError, ValueError) as error:
        accepted = "accepted: a table or JSON text, dates in quotes"
        raise ConfigError(f"{where}: holds what is not JSON: {error}; {accepted}") from None
    for _ in list_templates(body, where):
        pass  # each is checked as it comes
    return body


def _read_paths(table: Table, where: str) -> dict[str, JsonPath]:
    response = _get(table, "response", dict, where, {})
    _check_keys(response, RESPONSE_KEYS, where)
    return {name: parse_path(_get(response, name, str, where, None), f"{where} {name}") for name in response}


def _read_stream(table: Table, where: str) -> Stream | None:
    told = table.get("stream")
    if told is None:
        return None
    stream: Table = {"format": told} if isinstance(told, str) else _get(table, "stream", dict, where, {})
    _check_keys(stream, STREAM_KEYS, where)
    if stream.get("format", "sse") != "sse":
        raise ConfigError.unknown("format", str(stream["format"]), ("sse",), where=where)
    delta = _get(stream, "delta", str, where, "")
    return Stream(
        delta=parse_path(delta, f"{where} delta") if delta else None,
        done=_get(stream, "done", str, where, END_MARK),
        is_marked="done" in stream,
    )


def _get(table: Table, name: str, kind: type[V], where: str, default: V | None) -> V:
    """Return a value of a table, which has to be of a kind; without default it has to be there."""
    value = table.get(name, default)
    if isinstance(value, kind):
        return value
    fault = "is missing" if value is None else "has the wrong type"
    expected = "a text" if kind is str else "a table"
    raise ConfigError(f"{where}: {name} {fault}; expected {expected}")


def _check_keys(table: Table, known: Iterable[str], where: str) -> None:
    for name in table:
        if name not in known:
            raise ConfigError.unknown("key", name, known, where=where)


def _check_url(url: Template, where: str) -> None:
    """Refuse a URL that cannot be used, a user or password in it, and a host made of data."""
    whole = "".join(part if isinstance(part, str) else "x" for part in url.parts)
    try:
        parts = urlsplit(whole)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    else:
        usable = usable and "@" not in parts.netloc and whole.isprintable() and " " not in whole
    if not usable:
        raise ConfigError(f"{where}: cannot be used; accepted: http:// or https:// with a host and no user")
    if len(url.parts) > 1 and not (isinstance(url.parts[0], str) and _WITH_HOST.match(url.parts[0])):
        raise ConfigError(f"{where}: a placeholder may stand in path and parameters, not before")


def _list_query(url: Template) -> list[tuple[str, str]]:
    whole = "".join(part if isinstance(part, str) else "" for part in url.parts)
    return parse_qsl(urlsplit(whole).query)


def _list_secrets(written: Iterable[tuple[str, str]]) -> list[str]:
    """Return what is written under names of secrets, and the last word of it, as in `Bearer KEY`."""
    values = [v for name, v in written if v and (SECRET_NAME.search(name) or KEY_FORM.search(v))]
    return [secret for value in values for secret in (value, value.split()[-1]) if value.strip()]


def _list_body_secrets(value: JsonValue, name: str = "") -> list[str]:
    """Return the texts of a body that stand under names of secrets, or look like keys."""
    if isinstance(value, dict):
        return [secret for key, each in value.items() for secret in _list_body_secrets(each, key)]
    if isinstance(value, list):
        return [secret for each in value for secret in _list_body_secrets(each, name)]
    if not isinstance(value, str):
        return []
    is_named = SECRET_NAME.search(name) is not None and is_opaque(value)
    return [value] if is_named or KEY_FORM.search(value) else []
