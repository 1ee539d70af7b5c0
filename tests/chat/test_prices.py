"""Prices: whose they are, what a call costs, and which files are refused."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from assay.chat.prices import OWN_FILE, check_priced, read_prices
from assay.config import Endpoint, Limits, RunConfig, Target
from assay.contracts.chat import Usage
from assay.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

MILLION = Usage(input_tokens=1_000_000, output_tokens=1_000_000)


def write_prices(tmp_path: Path, content: dict[str, Any] | str) -> str:
    path = tmp_path / "prices.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


def make_config(target: str | None, judge: str | None = None, **limits: Any) -> RunConfig:
    return RunConfig(
        datasets=("rows.jsonl",),
        target=Target(kind="openai", endpoint=Endpoint(model=target)) if target else Target(),
        judge=Endpoint(model=judge) if judge else None,
        limits=Limits(**limits),
    )


def test_the_file_that_comes_along_is_dated_and_names_its_source() -> None:
    own = json.loads(OWN_FILE.read_text())
    assert date.fromisoformat(own["date"]).year >= 2025
    assert own["source"]
    assert (own["currency"], own["per"]) == ("USD", 1_000_000)
    assert 20 <= len(own["models"]) <= 50


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("gpt-4o", 12.5),
        ("GPT-4o", 12.5),
        ("gpt-4o-2024-08-06", 12.5),
        ("gpt-4o-2024-05-13", 20.0),
        ("gpt-4o-mini", 0.75),
        ("gpt-4o-mini-2024-07-18", 0.75),
        ("openai/gpt-4o-mini", 0.75),
        ("azure/eu/gpt-4o-2024-11-20", 12.5),
        ("gpt-4-0613", 90.0),
        ("claude-sonnet-4-5-20250929", 18.0),
        ("text-embedding-3-small", 0.02),
    ],
)
def test_a_model_is_found_by_its_name_without_date_or_provider(model: str, dollars: float) -> None:
    assert read_prices(None).price(model, MILLION) == pytest.approx(dollars)


@pytest.mark.parametrize("model", ["gpt-4o-maxi", "gpt-4o-audio", "gpt", "my-llama", "", "4o", "gpt-4o/mine"])
def test_a_model_that_nobody_priced_has_no_price(model: str) -> None:
    assert read_prices(None).price(model, MILLION) is None


def test_cached_tokens_are_a_part_of_the_input() -> None:
    usage = Usage(input_tokens=1000, output_tokens=100, cached_tokens=400, reasoning_tokens=90)
    expected = (600 * 2.5 + 400 * 1.25 + 100 * 10) / 1e6
    assert read_prices(None).price("gpt-4o", usage) == pytest.approx(expected)


def test_cached_tokens_cost_what_others_do_where_the_model_has_no_price_for_them() -> None:
    usage = Usage(input_tokens=1000, output_tokens=0, cached_tokens=400)
    assert read_prices(None).price("o3-pro", usage) == pytest.approx(1000 * 20 / 1e6)


def test_a_call_whose_tokens_nobody_told_has_no_price() -> None:
    assert read_prices(None).price("gpt-4o", Usage()) is None


def test_a_call_of_a_free_model_is_free_whatever_its_tokens(tmp_path: Path) -> None:
    prices = read_prices(write_prices(tmp_path, {"models": {"llama": {"input": 0, "output": 0}}}))
    assert prices.price("llama", Usage()) == 0.0
    assert prices.price("llama", MILLION) == 0.0


def test_a_file_of_ones_own_overrides_model_by_model(tmp_path: Path) -> None:
    models = {"GPT-4o": {"input": 1, "output": 1}, "llama": {"input": 3, "output": 4}}
    prices = read_prices(write_prices(tmp_path, {"models": models}))
    found = [prices.price(name, MILLION) for name in ("gpt-4o", "gpt-4o-mini", "llama", "other")]
    assert found == [pytest.approx(2), pytest.approx(0.75), pytest.approx(7), None]
    assert "prices.json" in prices.origin


def test_a_star_is_any_other_model(tmp_path: Path) -> None:
    prices = read_prices(write_prices(tmp_path, {"per": 1000, "models": {"*": {"input": 1, "output": 2}}}))
    assert prices.price("whatever", Usage(input_tokens=1000, output_tokens=1000)) == pytest.approx(3)
    assert prices.price("gpt-4o", MILLION) == pytest.approx(12.5)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"models": {"m": {"input": -1, "output": 2}}}, "model 'm', key 'input'"),
        ({"models": {"m": {"input": "1", "output": 2}}}, "model 'm', key 'input'"),
        ({"models": {"m": {"input": True, "output": 2}}}, "model 'm', key 'input'"),
        ({"models": {"m": {"input": 1}}}, "model 'm', key 'output'"),
        ({"models": {"m": {"input": 1, "output": 2, "cost": 1}}}, "known: input, output, cached"),
        ({"models": {"m": 3}}, "model 'm'"),
        ({"models": {}, "prices": {}}, "key 'prices': unknown"),
        ({"models": {}, "currency": "EUR"}, "'USD'"),
        ({"models": {}, "per": 0}, "key 'per'"),
        ({"model": {}}, "key 'models'"),
        ({"models": {"A": {"input": 1, "output": 2}, "a ": {"input": 1, "output": 2}}}, "twice"),
        ('{"models": {"m": {"input": 1e999, "output": 2}}}', "model 'm', key 'input'"),
        ('{"models": {"m": {"input": NaN, "output": 2}}}', "is no JSON"),
        ('{"models": {}, "models": {}}', "appears twice"),
        ("[]", "the file"),
        ("{", "is no JSON"),
    ],
)
def test_a_file_that_says_no_price_is_refused_with_its_place(
    tmp_path: Path, content: dict[str, Any] | str, told: str
) -> None:
    path = write_prices(tmp_path, content)
    with pytest.raises(ConfigError) as caught:
        read_prices(path)
    assert path in str(caught.value)
    assert told in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_prices(str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("target", "judge"), [("my-model", None), (None, "my-model"), ("my-model", "gpt-4o")]
)
def test_a_budget_of_money_needs_a_price_of_every_model(target: str | None, judge: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        check_priced(make_config(target, judge, max_cost=1.0), read_prices(None))
    told = str(caught.value)
    assert '{"models": {"my-model": {"input": 2.5, "output": 10}}}' in told
    assert "--prices FILE" in told
    assert "--max-tokens-total" in told
    assert "gpt-4o" not in told


@pytest.mark.parametrize(
    "config",
    [
        make_config("my-model", "other"),
        make_config("my-model", max_tokens=10),
        make_config("gpt-4o-mini", "gpt-4o", max_cost=1.0),
        make_config(None, max_cost=1.0),
    ],
)
def test_prices_are_not_needed_without_a_budget_of_money(config: RunConfig) -> None:
    check_priced(config, read_prices(None))


def test_the_users_price_of_what_was_asked_wins_over_the_model_that_answers(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(
        '{"models": {"my-deployment": {"input": 1, "output": 1}, "*": {"input": 7, "output": 7}}}'
    )
    prices, usage = read_prices(str(path)), Usage(1_000_000, 0)
    assert prices.price_answer("my-deployment", "gpt-4o", usage) == pytest.approx(1)
    assert prices.price_answer("another", "gpt-4o", usage) == pytest.approx(2.5)
    assert prices.price_answer("another", "unheard of", usage) == pytest.approx(7)
    assert read_prices(None).price_answer("another", "unheard of", usage) is None
