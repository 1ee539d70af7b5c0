"""What a run is asked to do, as one checked object without secrets."""

from __future__ import annotations

import codecs
import re
from decimal import Decimal
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

DEFAULT_STORE = ".assay"
MOST_ROWS = 2**40
TargetKind = Literal["stored", "openai", "azure", "python", "cmd", "http"]


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Endpoint(_Config):
    """A model behind an OpenAI-compatible URL or an Azure resource.

    Attributes:
        model: Model name, on Azure the deployment.
        provider: Which client speaks to it.
        base_url: Root of the API; None: the provider's own variable or default.
        api_key_env: Environment variable that holds the key; None: the provider's usual one.
        api_version: Azure API version, as text.
        api: Which of the two ways to ask, chat completions or responses.
        stream: Whether answers come in pieces.
    """

    model: str = Field(min_length=1)
    provider: Literal["openai", "azure"] = "openai"
    base_url: str | None = None
    api_key_env: str | None = None
    api_version: str | None = None
    api: Literal["chat", "responses"] = "chat"
    stream: bool = False

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, value: str | None) -> str | None:
        """Keep secrets out of what is stored: no user, no password, no parameter but the version."""
        if value is None:
            return None
        url = urlsplit(value)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError("must start with http:// or https:// and name a host")
        if "@" in url.netloc or set(parse_qs(url.query)) - {"api-version"}:
            raise ValueError(
                "must not carry user, password or parameters; the key goes into an environment variable"
            )
        return value


class Sampling(_Config):
    """How a model draws its answers; what is None or empty is left to the server.

    Attributes:
        stop: Texts that end an answer.
        params: Further parameters of the API, by their names there.
    """

    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    max_output_tokens: int | None = Field(default=None, ge=1, le=MOST_ROWS)
    stop: tuple[str, ...] = ()
    params: dict[str, JsonValue] = {}


class Target(_Config):
    """Where the answers come from.

    Attributes:
        kind: What answers.
        endpoint: The model, where one answers.
        place: `FILE.py:FUNCTION`, a command line, or the TOML file of an HTTP service, where one answers.
        place_sha256: Hash of the file of `place`, so that a changed one counts as another target.
        system: System message that opens every conversation.
        prompt: Template of what is sent for an item: a text, or JSON messages; None: its query or messages.
        sampling: How the model draws.
    """

    kind: TargetKind = "stored"
    endpoint: Endpoint | None = None
    place: str | None = None
    place_sha256: str | None = None
    system: str | None = None
    prompt: str | None = None
    sampling: Sampling = Sampling()

    @property
    def name(self) -> str:
        """What to call the target in lists: its model or place, or `stored`."""
        return self.endpoint.model if self.endpoint else self.place or self.kind


class Panel(_Config):
    """How verdicts come about where one answer of one judge is not enough.

    Attributes:
        repeats: How often each judge is asked about a row; their median counts.
        jury: Further judges beside the first.
        vote: How the judges of a jury come to one verdict.
        canaries: Rows with known verdicts that every batch asks about: `built-in`, or a JSON Lines file.
    """

    repeats: int = Field(default=1, ge=1, le=100)
    jury: tuple[Endpoint, ...] = ()
    vote: Literal["majority", "mean"] = "majority"
    canaries: str | None = None


class Limits(_Config):
    """How fast and how far calls may go.

    Attributes:
        rpm: Requests a minute that one endpoint is sent at most.
        tpm: Tokens a minute.
        max_wait_s: Longest wait that a server may ask for; a longer one is an error of the row.
        deadline_s: Seconds after which no further call is made.
        max_cost: US dollars that may be spent.
        max_tokens: Tokens that may be spent, in and out.
        prices: JSON file of prices; None: those that come with assay.
        order_seed: Seed of the order in which items are taken under a budget; None: they are as in the file.
    """

    rpm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tpm: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_wait_s: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    deadline_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, ge=1, lt=2**63)
    prices: str | None = None
    order_seed: int | None = 0

    @property
    def is_budget(self) -> bool:
        """Whether money, tokens or time may end a run before its last item."""
        return not (self.max_cost is None and self.max_tokens is None and self.deadline_s is None)


class Selection(_Config):
    """Which items of the datasets take part.

    Attributes:
        where: SQL condition over the columns of `items`.
        id: Glob over item ids.
        failed_of: Run whose failed or errored items are taken.
        limit: At most this many items, in file order.
    """

    where: str | None = None
    id: str | None = None
    failed_of: str | None = None
    limit: int | None = Field(default=None, ge=1, le=MOST_ROWS)


class Reading(_Config):
    """How dataset files are read.

    Attributes:
        encoding: Text encoding of the files; None: UTF-8, or what a byte order mark says.
        json_columns: Columns whose texts are JSON.
        allow_empty: Whether a file may hold no rows.
        lenient: Whether NaN literals count as null and repeated keys as their last value.
        strict: Whether notices that the published formats forbid are errors.
        prefer: Which form counts in a row that holds both messages and query or response.
        on_bad_row: Whether bad rows end the reading or are set aside.
    """

    encoding: str | None = None
    json_columns: tuple[str, ...] = ()
    allow_empty: bool = False
    lenient: bool = False
    strict: bool = False
    prefer: Literal["messages", "query"] | None = None
    on_bad_row: Literal["fail", "quarantine"] = "fail"

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, value: str | None) -> str | None:
        """Refuse a name that Python has no text codec for."""
        if value is not None:
            try:
                "".encode(value)
                codecs.getincrementaldecoder(value)
            except LookupError as error:
                raise ValueError(
                    f"{value!r} is no text encoding; such as utf-8, utf-16, cp1252, latin-1, shift_jis"
                ) from error
        return value


class RunConfig(_Config):
    """Everything that decides what a run computes.

    Attributes:
        datasets: Files, globs, folders or `-`, as the user named them; none: the file that is looked for.
        reading: How the datasets are read.
        responses: File with stored answers by id.
        judge: The model that judges, the first one of a jury.
        panel: Repeats, jury and canaries.
        embeddings: The model that turns texts into vectors.
        against: Run whose answers are the other ones of pairs; None: those of the items.
        evaluators: Names the user asked for; empty: those of the files.
        add_evaluators: Whether `evaluators` come on top of those of the files.
        own_evaluators: `FILE.py:NAME`, folders and prompt files (`.md`) with evaluators of the user's own.
        allow_graders_network: Whether Python graders run where the network cannot be cut.
        options: Evaluator name to option name to value; `threshold` is one of them.
        mapping: `FIELD` or `EVALUATOR.FIELD` to template.
        trials: How often every conversation is held.
        concurrency: Most calls under way at one time; None: chosen by the kind of target.
        timeout_s: Seconds that one call may take.
        limits: How fast and how far calls may go.
        reuse: Whose identical answers are taken: a run id, `all`, or an age such as `90d`; None: nobody's.
        max_errors: `N` or `P%` of evaluations that may end in an error.
        batch_size: Rows of a batch; None: chosen by the kind of work.
    """

    datasets: tuple[str, ...]
    reading: Reading = Reading()
    responses: str | None = None
    target: Target = Target()
    judge: Endpoint | None = None
    panel: Panel = Panel()
    embeddings: Endpoint | None = None
    against: str | None = None
    evaluators: tuple[str, ...] = ()
    add_evaluators: bool = False
    own_evaluators: tuple[str, ...] = ()
    allow_graders_network: bool = False
    options: dict[str, dict[str, JsonValue]] = {}
    mapping: dict[str, str] = {}
    selection: Selection = Selection()
    trials: int = Field(default=1, ge=1, le=10_000)
    concurrency: int | None = Field(default=None, ge=1, le=10_000)
    timeout_s: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    limits: Limits = Limits()
    reuse: str | None = None
    batch_size: int | None = Field(default=None, ge=1, le=MOST_ROWS)
    max_errors: str = "0"
    name: str | None = None
    labels: tuple[str, ...] = ()
    store: str = DEFAULT_STORE

    @property
    def judges(self) -> tuple[Endpoint, ...]:
        """All models that judge."""
        return () if self.judge is None else (self.judge, *self.panel.jury)

    @field_validator("max_errors")
    @classmethod
    def _check_max_errors(cls, value: str) -> str:
        if not re.fullmatch(r"\d{1,12}|\d{1,3}(\.\d{1,9})?%", value):
            raise ValueError("must be a count such as 5 or a share such as 2.5%")
        return value

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for label in value:
            if not re.fullmatch(r"[^=\s]+=.*", label):
                raise ValueError(f"label {label!r} must be written k=v")
        return value


def count_allowed(max_errors: str, attempted: int) -> int:
    """Return how many of `attempted` evaluations may be errors under `N` or `P%`."""
    if max_errors.endswith("%"):
        return int(attempted * Decimal(max_errors[:-1]) / 100)
    return int(max_errors)
