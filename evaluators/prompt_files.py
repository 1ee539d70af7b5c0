"""Prompt files: a judge as one Markdown file, its rubric under a head that says what it reads and answers."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Literal, Self, cast

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from assay.errors import ConfigError, list_names, nearest_names
from evaluators.contract import FIELDS, JudgeEvaluator, Options, Scale
from evaluators.judging import MAX_OUTPUT_TOKENS, Rubric, ask_judge, build_rubric
from evaluators.reply_forms import NUMBER, LabelForm, ScoreForm

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from assay.contracts.chat import Chat
    from evaluators.contract import Fields, Verdict
    from evaluators.reply_forms import Form

SHIPPED = "evaluators"  # the package whose folder `prompts` holds the built-in ones
_SCALE = re.compile(rf"({NUMBER})\s*\.\.\s*({NUMBER})(\s+whole)?")
_LOADER = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_HEAD = re.compile(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*\r?\n(.*)", re.DOTALL)


class Head(BaseModel):
    """What stands above a rubric, as YAML whose values are all read as text.

    Attributes:
        name: The evaluator's name.
        summary: One sentence for lists; empty: the first of the rubric.
        aliases: Further names.
        version: Raised with every change of what the same answer may score.
        scale: `LOW..HIGH`, with ` whole` behind it where fractions are no grades.
        passing: The labels that pass, where `labels` is a list.
        labels: Label to score, or labels of which those in `passing` score 1 and the others 0.
        fields: What the judge is shown, in order; a `?` behind a name: where it is there.
        threshold: The score that passes; none: the middle of the scale, or for labels the top.
        direction: Which end of the scale is the good one.
        max_output_tokens: Room for the answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    summary: str = ""
    aliases: tuple[str, ...] = ()
    version: int = Field(default=1, ge=1)
    scale: str | None = None
    passing: tuple[str, ...] = ()
    labels: dict[str, Annotated[float, Field(allow_inf_nan=False)]] | None = None
    fields: tuple[str, ...]
    threshold: float | None = None
    direction: Literal["higher", "lower"] = "higher"
    max_output_tokens: int = Field(default=MAX_OUTPUT_TOKENS, ge=1)

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        """Refuse a name that no option or query could spell."""
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", value):
            text = f"a letter, then letters, digits, _ and -, not {value!r}"
            raise PydanticCustomError("name", "{text}", {"text": text})
        return value

    @field_validator("aliases", "passing", "fields", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Take `a, b` for a list."""
        return _split_names(value) if isinstance(value, str) else value

    @field_validator("labels", mode="before")
    @classmethod
    def _score_labels(cls, value: object, info: ValidationInfo) -> object:
        """Turn a list of labels into scores."""
        if not isinstance(value, str | list):
            return value
        labels = _split_names(cast("str | list[object]", value))
        passing: tuple[str, ...] = info.data.get("passing", ())
        if not passing or not set(passing) <= set(labels):
            text = f"a `passing` that names those of {list_names(labels)} that pass"
            raise PydanticCustomError("passing", "{text}", {"text": text})
        return {label: float(label in passing) for label in labels}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.scale is None) == (self.labels is None):
            raise PydanticCustomError("scale", "either a `scale` such as 1..5 or `labels`")
        if self.scale is not None and not _SCALE.fullmatch(self.scale.strip()):
            raise PydanticCustomError("scale", "a scale such as 1..5, 0..1 or 0..7 whole")
        if self.grades.low >= (self.grades.high or 0.0):
            raise PydanticCustomError("scale", "two different ends, the lower one first")
        if self.threshold is not None and self.threshold not in Scale(self.grades.low, self.grades.high):
            raise PydanticCustomError("threshold", "a threshold within the scale")
        if not self.shown or len(set(self.shown)) < len(self.shown):
            raise PydanticCustomError("fields", "the fields that are shown, each once")
        for name in self.shown:
            if name not in FIELDS:
                hint = list_names(nearest_names(name, FIELDS) or FIELDS)
                text = f"known fields, which {name!r} is not; such as {hint}"
                raise PydanticCustomError("field", "{text}", {"text": text})
        return self

    @cached_property
    def grades(self) -> Scale:
        """The scale as numbers; of labels from the least to the most any of them is worth."""
        if self.labels is not None:
            return Scale(min(self.labels.values()), max(self.labels.values()))
        found = _SCALE.fullmatch((self.scale or "").strip())
        low, high, whole = found.groups() if found else ("0", "1", None)
        return Scale(float(low), float(high), whole=whole is not None)

    @property
    def shown(self) -> tuple[str, ...]:
        """Names of the fields, without marks."""
        return tuple(name.removesuffix("?") for name in self.fields)

    @property
    def form(self) -> Form:
        """What is answered with."""
        return ScoreForm(self.grades) if self.labels is None else LabelForm(self.labels)

    @property
    def passes_at(self) -> float:
        """The threshold: that of the file, else the middle of the scale; of labels and 0 or 1, the top."""
        if self.threshold is not None:
            return self.threshold
        low, high = self.grades.low, self.grades.high or 0.0
        ends = self.labels is not None or (self.grades.whole and high - low == 1)
        top, bottom = (high, low) if self.direction == "higher" else (low, high)
        return top if ends else (top + bottom) / 2


class PromptFile:
    """A judge as a file.

    Attributes:
        head: What stands above the rubric.
        text: The rubric.
        rubric: What the judge is told.
    """

    def __init__(self, head: Head, text: str) -> None:
        self.head, self.text = head, text
        self.rubric: Rubric = build_rubric(text, head.form, head.shown, head.max_output_tokens)


def read_prompt(stem: str) -> PromptFile:
    """Read the built-in prompt file `prompts/<stem>.md`."""
    text = files(SHIPPED).joinpath("prompts", f"{stem}.md").read_text(encoding="utf-8")
    return parse_prompt_file(text, f"prompts/{stem}.md")


def parse_prompt_file(text: str, place: str) -> PromptFile:
    """Read a prompt file: YAML between two lines `---`, then the rubric.

    `{{query}}` in the rubric stands for the block of that name, which is shown fenced and not put in.

    Args:
        text: The file.
        place: What messages call it.

    Raises:
        ConfigError: The head is missing or wrong; the message names the key and what is accepted.
    """
    parts = _HEAD.fullmatch(text.removeprefix("\ufeff").lstrip())
    if parts is None:
        raise ConfigError(f"{place}: begin with a head between two lines ---, such as name, scale and fields")
    head = _read_head(parts.group(1), place)
    rubric = _PLACEHOLDER.sub(lambda match: _name_block(match.group(1), head, place), parts.group(2)).strip()
    if not rubric:
        raise ConfigError(f"{place}: no rubric under the head; say what makes a good answer")
    return PromptFile(head, rubric)


def make_judge(prompt: PromptFile) -> JudgeEvaluator[Options]:
    """Return the evaluator that needs nothing but its prompt file."""
    head = prompt.head
    return JudgeEvaluator(
        name=head.name,
        summary=head.summary or prompt.text.split(".")[0].strip().replace("\n", " ") + ".",
        aliases=head.aliases,
        needs=tuple(name for name in head.fields if not name.endswith("?")),
        wants=tuple(name.removesuffix("?") for name in head.fields if name.endswith("?")),
        options=Options,
        scale=head.grades,
        higher_is_better=head.direction == "higher",
        threshold=head.passes_at,
        version=head.version,
        ask=_make_question(prompt),
        rubrics=(prompt.rubric,),
    )


def _make_question(prompt: PromptFile) -> Callable[[Options, Fields, Chat], Awaitable[Verdict]]:
    shown, rubric = prompt.head.shown, prompt.rubric

    async def ask(_options: Options, fields: Fields, chat: Chat) -> Verdict:
        return await ask_judge(rubric, {name: fields[name] for name in shown}, chat)

    return ask


def _split_names(value: str | list[object]) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    return tuple(name.strip() for name in map(str, names) if name.strip())


def _read_head(text: str, place: str) -> Head:
    try:
        _check_keys(text, place)
        found = yaml.load(text, Loader=_LOADER)  # noqa: S506 - the base loader makes nothing but texts
    except yaml.YAMLError as error:
        raise ConfigError(f"{place}: the head is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{place}: the head holds no keys; write name: …, scale: …, fields: …")
    try:
        return Head.model_validate(found)
    except ValidationError as error:
        raise _explain(error, place) from error


def _check_keys(text: str, place: str) -> None:
    """Refuse a key that stands twice, of which YAML would take the last."""
    node = yaml.compose(text, Loader=_LOADER)
    keys = [str(key.value) for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
    twice = [key for key, count in Counter(keys).items() if count > 1]
    if twice:
        raise ConfigError(f"{place}: the head names {list_names(twice)} twice; keep one")


def _explain(error: ValidationError, place: str) -> ConfigError:
    found = error.errors()
    problem = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    key = str(problem["loc"][0]) if problem["loc"] else ""
    if problem["type"] == "extra_forbidden":
        return ConfigError.unknown("key of the head", key, Head.model_fields, where=place)
    if problem["type"] == "missing":
        return ConfigError(f"{place}: the head has no {key}; it needs name, fields, and a scale or labels")
    what = f"{key}: " if key else "the head: "
    return ConfigError(f"{place}: {what}give {problem['msg'].removeprefix('Input should be ')}")


def _name_block(name: str, head: Head, place: str) -> str:
    field = name.removeprefix("item.").removeprefix("sample.")
    if field not in head.shown:
        shown, known = f"{{{{{name}}}}}", list_names(head.shown)
        raise ConfigError(f"{place}: {shown} is no field of the head, which names {known}; add it to fields")
    return f"`{field}`"
