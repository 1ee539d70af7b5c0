"""The body of a chat-completions request, and what a server taught about the parameters it takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import orjson

from assay.contracts.json_text import dump_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.chat import ChatRequest
    from assay.contracts.json_text import JsonValue

Body: TypeAlias = "dict[str, object]"

SCHEMA_NAME = "verdict"
PLAIN_JSON: Mapping[str, object] = {"type": "json_object"}
STREAMED: Mapping[str, object] = {"stream": True, "stream_options": {"include_usage": True}}

_REFUSED = re.compile(
    r"unsupported|(?:not|n't|only|cannot both) (?:\w+ )?(?:support|permit|allow|accept|specified|available)"
    r"|unrecogni[sz]ed|unknown|unexpected|extra_forbidden|deprecated|removed|must be verified"
    r"|only the default|only \S+ is (?:allowed|supported)|must be '?json_|invalid schema"
    r"|\buse\b.{1,40}\binstead",
    re.IGNORECASE,
)
# What is said of the form of an answer alone, and of a value of another parameter would mean something else.
_FORM_REFUSED = re.compile(
    r"unavailable|enabled only|one of|supported values|only supports|not both|missing field|input should be"
    r"|extra inputs|invalid json schema",
    re.IGNORECASE,
)
_OFFER = re.compile(r"\buse\b.{1,40}?\binstead\b", re.IGNORECASE)
# What complains of the value, so that the parameter itself is taken.
_OF_VALUE = re.compile(
    r"too (?:large|small|long|many|high|low)|exceed|at (?:most|least)|between \S+ and|(?:less|greater) than"
    r"|maximum|minimum|out of range",
    re.IGNORECASE,
)
_RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_DROPPABLE = (
    "temperature",
    "top_p",
    "seed",
    "stop",
    "response_format",
    "text",
    "stream_options",
    "stream",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "reasoning_effort",
    "reasoning",
    "verbosity",
    "encoding_format",
)
_OF_FORM = re.compile(
    r"(?:text|output_config)\.format|response[_ ]format|json[_ ](?:object|schema|mode)", re.IGNORECASE
)
_OTHER_SIGNS = {
    "text": _OF_FORM,
    "response_format": _OF_FORM,
    "stream": re.compile(r"'stream'|to stream this model|\(parameter stream\)|streaming", re.IGNORECASE),
}


def build_body(model: str, request: ChatRequest) -> Body:
    """Return the request as the chat-completions API takes it; what is None is left out."""
    body: Body = {"model": model, "messages": [dict(message) for message in request.messages]}
    asked: Body = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed,
        "stop": list(request.stop) or None,
        "max_tokens": request.max_output_tokens,
        "response_format": _build_format(request),
    }
    body.update({name: value for name, value in asked.items() if value is not None})
    body.update(request.params)
    return body


def describe_schema(schema: Mapping[str, JsonValue]) -> Body:
    """Return how both APIs are told the form of an answer."""
    return {"name": SCHEMA_NAME, "strict": True, "schema": schema}


def _build_format(request: ChatRequest) -> Body | None:
    if request.json_schema is not None:
        return {"type": "json_schema", "json_schema": describe_schema(request.json_schema)}
    return dict(PLAIN_JSON) if request.json_object else None


def write_body(body: Body) -> bytes:
    """Write a body as JSON.

    Raises:
        UnicodeEncodeError: A text holds half a character.
    """
    try:
        return orjson.dumps(body)
    except TypeError:  # numbers with their source text, integers beyond 64 bits, half characters
        return dump_json(body).encode()


class Learnt:
    """Parameters that one server refused, kept so that each is refused once per chat.

    Calls under way together may each meet the first refusal; later ones none.
    """

    def __init__(self) -> None:
        self._renamed: dict[str, str] = {}
        self._dropped: set[str] = set()
        self._plain_json = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not sent as it was asked for, a sentence each."""
        renamed = [f"{name} is sent as {new}" for name, new in self._renamed.items()]
        plain = ("a JSON object is asked for without its schema",) if self._plain_json else ()
        return (
            *renamed,
            *plain,
            *(f"{name} is not sent: the server refuses it" for name in sorted(self._dropped)),
        )

    def adapt(self, body: Mapping[str, object]) -> Body:
        """Return a body that holds only what the server is known to take."""
        if not (self._renamed or self._dropped or self._plain_json):
            return dict(body)
        if self._plain_json:
            body = {name: _drop_schema(name, value) for name, value in body.items()}
        renamed = {self._renamed.get(name, name): value for name, value in body.items()}
        return {name: value for name, value in renamed.items() if name not in self._dropped}

    def learn(self, sent: Mapping[str, object], complaint: str) -> bool:
        """Read a refusal (status 400 or 422) and say whether the next body will differ from `sent`."""
        if not _is_refusal(complaint) or _OF_VALUE.search(complaint):
            return False
        blamed = _OFFER.sub("", complaint)
        refused = [name for name in _DROPPABLE if name in sent and _names(blamed, name)]
        if any(_drop_schema(name, sent[name]) != sent[name] for name in refused):
            self._plain_json = True  # a plain JSON object may still be had
            return True
        if "cannot both be" in complaint:  # one of two is taken; the first matters more
            refused = refused[1:]
        self._note(refused, complaint)
        return self.adapt(sent) != sent

    def _note(self, refused: list[str], complaint: str) -> None:
        """Rename what has another name that was not refused before, drop the rest."""
        for name in refused:
            other = _RENAMED.get(name)
            is_offered = name != "max_tokens" or (other or "") in complaint
            if other and is_offered and other not in self._renamed and other not in self._dropped:
                self._renamed[name] = other
                return
            self._dropped.add(name)
            if name == "stream":
                self._dropped.add("stream_options")


def _is_refusal(complaint: str) -> bool:
    of_form = _OF_FORM.search(complaint) and _FORM_REFUSED.search(complaint)
    return bool(of_form or _REFUSED.search(complaint))


def _names(complaint: str, name: str) -> bool:
    """Whether a complaint names a parameter, and does not only hold a word that is spelt alike."""
    sign = _OTHER_SIGNS.get(name)
    if sign is not None:
        return sign.search(complaint) is not None
    quoted = rf"""['"`\\]{name}['"`\\.]"""
    if "_" not in name and name != "temperature":  # an everyday word counts only where a name stands
        before, after = r"(?:parameter|argument|property|field|param)", r"(?:param|arg)"
        named = rf"[:,] {name}(?![\w ])|{before} {name}\b|\b{name} {after}"
        return re.search(f"{quoted}|{named}", complaint) is not None
    return re.search(rf"{quoted}|(?<!\w){name}(?!\w)", complaint) is not None


def _drop_schema(name: str, value: object) -> object:
    """Return a parameter that asks for JSON of a schema as one that asks for any JSON object."""
    told = str(value) if name in {"response_format", "text"} else ""
    if "'json_schema'" not in told:
        return value
    return dict(PLAIN_JSON) if name == "response_format" else {"format": dict(PLAIN_JSON)}
