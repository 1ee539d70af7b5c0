"""The options of `assay run`, and the flat settings they come to."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotation
from typing import TYPE_CHECKING, Annotated, Literal, cast

from cyclopts import Group, Parameter

from assay.cli.parsing import parse_conditions, parse_mappings, parse_options, parse_params
from assay.settings import Engine  # noqa: TC001 - cyclopts reads the annotation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.settings import Settings

READING, PRINTING = Group("Reading", sort_key=8), Group("Output", sort_key=9)


def _group(title: str, place: int) -> Parameter:
    """Return how the options of a dataclass are named and listed."""
    return Parameter(name="*", group=Group(title, sort_key=place), show_default=False, negative=())


@_group("How the model draws", 2)
@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How the model draws its answers; what is left out is left to the server."""

    temperature: float | None = None
    """Sampling temperature."""
    top_p: float | None = None
    """Share of the likeliest tokens that is drawn from."""
    seed: int | None = None
    """Seed, where the server has one."""
    max_output_tokens: int | None = None
    """Longest answer, in tokens."""
    stop: tuple[str, ...] = ()
    """Text that ends an answer; repeatable."""
    param: tuple[str, ...] = ()
    """NAME=JSON, a further parameter of the API, such as reasoning_effort=low; repeatable."""


@_group("Answers", 1)
@dataclass(frozen=True, kw_only=True)
class Answers:
    """Where the answers come from."""

    target: str | None = None
    """stored, openai (with --model), azure, python:FILE.py:FN, cmd:'PROG ARGS', http:FILE.toml or a NAME."""
    model: str | None = None
    """Model (on Azure the deployment) that answers."""
    base_url: str | None = None
    """URL of the API, such as http://127.0.0.1:8000/v1. Default: OPENAI_BASE_URL or AZURE_OPENAI_ENDPOINT."""
    api_version: str | None = None
    """Version of the Azure API. Default: AZURE_OPENAI_API_VERSION."""
    api_key_env: str | None = None
    """Name of the variable that holds the key. Default: OPENAI_API_KEY or AZURE_OPENAI_API_KEY."""
    responses_api: Annotated[bool | None, Parameter(negative="--no-responses-api")] = None
    """Ask by the responses API instead of chat completions."""
    stream: Annotated[bool | None, Parameter(negative="--no-stream")] = None
    """Have the answers come in pieces."""
    system: str | None = None
    """System message that opens every conversation: a text, or @FILE."""
    prompt_template: Path | None = None
    """File with what is sent for an item: a text with {{item.FIELD}}, or JSON input_messages."""
    trials: int | None = None
    """How often every conversation is held. Default: 1."""
    responses: Path | None = None
    """CSV, JSONL or Parquet file of stored answers: id[, turn, trial], response."""
    config: Path | None = None
    """TOML file that says what each NAME of a target or judge is. Default: assay.toml, if there is one."""
    drawing: Drawing = Drawing()


@_group("Judge", 4)
@dataclass(frozen=True, kw_only=True)
class Judging:
    """Who judges."""

    judge: tuple[str, ...] = ()
    """Model that judges; azure:DEPLOYMENT for Azure; or a NAME. Repeated: a jury."""
    judge_base_url: str | None = None
    """URL of the judge's API. Default: --base-url, with its key and version."""
    judge_api_version: str | None = None
    """Version of the Azure API."""
    judge_api_key_env: str | None = None
    """Name of the variable that holds the judge's key. Default: as for the target."""
    judge_prompt: tuple[str, ...] = ()
    """FILE.md of a judge of your own: a rubric under a head; repeatable. It runs beside the others."""
    judge_repeats: int | None = None
    """How often each judge is asked about a row; the median counts. Default: 1."""
    judge_vote: Literal["majority", "mean"] | None = None
    """How a jury comes to one verdict: majority (the middle one) or mean. Default: majority."""
    canaries: str | None = None
    """built-in, or a JSONL file: rows with known verdicts that every batch asks about, to watch the judge."""
    against: str | None = None
    """Compare the answers with those of this run, pair by pair."""
    embedding_model: str | None = None
    """Model that turns texts into vectors; azure:DEPLOYMENT for Azure."""
    embedding_base_url: str | None = None
    """URL of its API. Default: --base-url, with its key and version."""
    embedding_api_version: str | None = None
    """Version of the Azure API."""
    embedding_api_key_env: str | None = None
    """Name of the variable that holds its key. Default: as for the target."""


@_group("Scoring", 3)
@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What is scored."""

    evaluators: str | None = None
    """A,B replaces the evaluators of the files, +A,B adds to them."""
    evaluator: tuple[str, ...] = ()
    """FILE.py:NAME of an evaluator of your own, or its folder; repeatable. It runs beside the others."""
    allow_graders_network: bool = False
    """Run Python graders even where their network cannot be cut."""
    option: tuple[str, ...] = ()
    """EVALUATOR.NAME=JSON sets an option or the threshold; repeatable."""
    only_if: tuple[str, ...] = ()
    """EVALUATOR=OTHER:STATE runs the first only where the other one's outcome is so, such as
    Relevance=ExactMatch:fail; repeatable."""
    mapping: tuple[str, ...] = ()
    """[EVALUATOR.]FIELD=TEMPLATE, or a JSON file of such pairs; repeatable."""
    max_errors: str | None = None
    """Evaluations that may end in an error, as a count or P%; more is exit code 3. Default: 0."""
    judging: Judging = Judging()


@_group("Items", 5)
@dataclass(frozen=True, kw_only=True)
class Items:
    """Which items take part."""

    where: str | None = None
    """SQL condition over the items, such as "category = 'billing'"."""
    id: str | None = None
    """Glob over item ids."""
    failed_of: str | None = None
    """Only what failed or ended in an error in this run."""
    limit: int | None = None
    """At most this many items."""


@_group("Calls", 6)
@dataclass(frozen=True, kw_only=True)
class Calls:
    """How fast and how far calls go."""

    concurrency: int | None = None
    """Most calls under way at one endpoint. Default: 128 for models, 32 for services, 16 for functions."""
    timeout_s: Annotated[str | None, Parameter(name="--timeout")] = None
    """Seconds until a call is given up, or such as 2m. Default: 120."""
    rpm: float | None = None
    """Requests a minute at most."""
    tpm: float | None = None
    """Tokens a minute at most."""
    max_wait_s: Annotated[str | None, Parameter(name="--max-wait")] = None
    """Longest wait that a server may ask for; a longer one is an error of the row. Default: 60."""
    deadline_s: Annotated[str | None, Parameter(name="--deadline")] = None
    """Time after which no further call is made, such as 600, 90m or 2h."""
    max_cost: float | None = None
    """US dollars after which no further call is made."""
    max_tokens_total: int | None = None
    """Tokens, in and out, after which no further call is made."""
    prices: Path | None = None
    """JSON file of prices. Default: those that come with assay."""
    order_seed: int | None = None
    """Seed of the order in which items are taken where money, tokens or time may run out. Default: 0."""
    reuse: str | None = None
    """Take identical answers of earlier runs: a run, all, or those of the last 90d."""


@_group("Run", 7)
@dataclass(frozen=True, kw_only=True)
class Running:
    """How the run goes and what it is called."""

    engine: Engine | None = None
    """local or prefect. Default: prefect where an API is configured, else local."""
    batch_size: int | None = None
    """Rows of a batch. Default: 200 with model calls, else 10000."""
    resume: str | None = None
    """Go on with this run; what was answered is not asked again."""
    batch: Literal["submit"] | None = None
    """submit: send what models are asked as jobs of the Batch API, at half the price; then assay batch."""
    name: str | None = None
    """Name of the run."""
    label: tuple[str, ...] = ()
    """k=v; repeatable."""
    calls: Calls = Calls()


_SETTING_OF = {
    "evaluator": "own_evaluators",
    "judge_prompt": "judge_prompts",
    "label": "labels",
    "option": "options",
    "param": "params",
}


def collect_settings(answers: Answers, scoring: Scoring, items: Items, running: Running) -> Settings:
    """Turn the parsed options into the flat settings of the Python API; what was not given is not there.

    Raises:
        ConfigError: An option, parameter or mapping is not of its form.
    """
    given: dict[str, object] = {}
    for group in (answers, answers.drawing, scoring, scoring.judging, items, running, running.calls):
        given |= {_SETTING_OF.get(name, name): value for name, value in _list_given(group)}
    given.pop("batch", None)  # how the run is asked, and nothing of its configuration
    given["options"] = parse_options(scoring.option)
    if scoring.only_if:
        given["only_if"] = parse_conditions(scoring.only_if)
    given["mapping"] = parse_mappings(scoring.mapping)
    if answers.drawing.param:
        given["params"] = parse_params(answers.drawing.param)
    return cast("Settings", given)


def _list_given(
    group: Answers | Drawing | Scoring | Judging | Items | Running | Calls,
) -> Iterator[tuple[str, object]]:
    """Yield name and value of the options that were given; the groups inside come by themselves."""
    for option in fields(group):
        value: str | tuple[str, ...] | float | Path | Drawing | Judging | Calls | None
        value = getattr(group, option.name)
        if value is None or value == () or (value is False and option.default is False):
            continue
        if not isinstance(value, Drawing | Judging | Calls):
            yield option.name, [*value] if isinstance(value, tuple) else value
