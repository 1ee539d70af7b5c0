"""What a token of a model costs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.contracts.json_text import parse_json
from assay.errors import ConfigError, list_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assay.config import RunConfig
    from assay.contracts.chat import Usage

OWN_FILE = Path(__file__).with_name("prices.json")
ANY_MODEL = "*"
_DATE = re.compile(r"[-@](?:\d{4}-\d\d-\d\d|\d{8}|\d{4})$")

_Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


class Price(BaseModel):
    """What the tokens of one model cost, in US dollars per `per` tokens of the file.

    Attributes:
        input: Of the request.
        output: Of the answer, reasoning included.
        cached: Of the part of the request that came from a cache; None: as `input`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: _Amount
    output: _Amount
    cached: _Amount | None = None


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str | None = None
    currency: Literal["USD"] = "USD"
    per: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] = 1_000_000
    source: str | None = None
    models: dict[str, Price]


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model.

    Attributes:
        models: Name in lower case, or `*` for any other model, to US dollars per token.
        origin: Where they come from, for people.
        given: Names that the user's own file has.
    """

    models: Mapping[str, Price]
    origin: str = ""
    given: frozenset[str] = frozenset()

    def find(self, model: str) -> Price | None:
        """Return the price of a token; None where the model has none.

        The exact name counts, then the one without a date, then both without the provider before the
        last slash, whatever the case; `*` stands for all that are not found.
        """
        for name in _list_names(model.strip().casefold()):
            if name in self.models:
                return self.models[name]
        return self.models.get(ANY_MODEL)

    def price_answer(self, asked: str, told: str, usage: Usage) -> float | None:
        """Return the price of a call whose answer names a model of its own.

        The user's price of the model asked for wins, as deployments have names of their own; then the model
        that the answer names, as it is the more exact; then the one asked for, and `*`.
        """
        names = (told, asked)
        if any(name in self.given for name in _list_names(asked.strip().casefold())):
            names = (asked, told)
        return self.price(next(filter(self._has, names), asked), usage)

    def _has(self, model: str) -> bool:
        return any(name in self.models for name in _list_names(model.strip().casefold()))

    def price(self, model: str, usage: Usage) -> float | None:
        """Return the price of a call.

        Args:
            model: Name of the model.
            usage: Its tokens. Cached ones are part of the input, reasoning is part of the output.

        Returns:
            US dollars; None where the model has no price, or nobody says how many tokens it was.
        """
        price = self.find(model)
        if price is None:
            return None
        if usage.input_tokens is None and usage.output_tokens is None:
            return None if price.input or price.output else 0.0
        given, said = usage.input_tokens or 0, usage.output_tokens or 0
        cached = 0 if price.cached is None else min(usage.cached_tokens or 0, given)
        return (given - cached) * price.input + cached * (price.cached or 0.0) + said * price.output


def read_prices(path: str | None) -> Prices:
    """Read the prices that come with assay, and those of a file over them, model by model.

    Args:
        path: JSON file of the same form, in which `models` alone is needed; None: no other prices.

    Raises:
        ConfigError: The file cannot be read, or says something that is no price; the message names file,
            model and key.
    """
    own = _read_file(OWN_FILE)
    origin = f"prices of {own.date}, {own.source}"
    if path is None:
        return Prices(_scale(own, OWN_FILE), origin)
    given = _read_file(Path(path))
    dated = f" of {given.date}" if given.date else ""
    others = _scale(given, Path(path))
    merged = _scale(own, OWN_FILE) | others
    return Prices(merged, f"prices of {path}{dated}, over {origin}", frozenset(others))


def check_priced(config: RunConfig, prices: Prices) -> None:
    """Refuse a budget of money for a model whose price nobody knows.

    Raises:
        ConfigError: The message names the model, and what to do.
    """
    if config.limits.max_cost is None:
        return
    endpoints = (config.target.endpoint, *config.judges, config.embeddings)
    models = dict.fromkeys(endpoint.model for endpoint in endpoints if endpoint is not None)
    unpriced = [model for model in models if prices.find(model) is None]
    if unpriced:
        raise ConfigError(
            f"--max-cost: no price is known of {list_names(map(repr, unpriced))}; give US dollars per "
            f"million tokens with --prices FILE, such as {_write_example(unpriced[0])}, "
            "or bound the tokens instead, with --max-tokens-total"
        )


def _list_names(name: str) -> Iterator[str]:
    """Return the names a model may have in a table, the most exact first."""
    yield name
    yield _DATE.sub("", name)
    bare = name.rpartition("/")[2]
    yield bare
    yield _DATE.sub("", bare)


def _read_file(path: Path) -> _File:
    try:
        return _File.model_validate(parse_json(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise ConfigError(f"prices {path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise ConfigError(f"prices {path}: {_describe(error)}") from error
    except ValueError as error:
        raise ConfigError(f"prices {path}: is no JSON: {error}") from error


def _describe(error: ValidationError) -> str:
    """Name model and key of the first problem, and what would be accepted."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    if place[:1] == ["models"] and len(place) > 1:
        where = f"model {place[1]!r}" + "".join(f", key {key!r}" for key in place[2:3])
    else:
        where = f"key {place[0]!r}" if place else "the file"
    if first["type"] == "extra_forbidden":
        known = Price.model_fields if len(place) > 1 else _File.model_fields
        return f"{where}: unknown; known: {list_names(known)}"
    return f"{where}: {first['msg']}; write {_write_example('MODEL')}"


def _write_example(model: str) -> str:
    """Return the text of a file with one price."""
    return json.dumps({"models": {model: {"input": 2.5, "output": 10}}}, ensure_ascii=False)


def _scale(file: _File, path: Path) -> dict[str, Price]:
    """Return prices per token by name in lower case."""
    scaled: dict[str, Price] = {}
    for model, price in file.models.items():
        name = model.strip().casefold()
        if not name or name in scaled:
            problem = "is named twice" if name else "has no name"
            raise ConfigError(f"prices {path}: model {model!r} {problem}; upper and lower case are the same")
        amounts = {key: value / file.per for key, value in price if value is not None}
        scaled[name] = Price.model_validate(amounts)
    return scaled
