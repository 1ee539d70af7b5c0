from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

LIMITS = [("LatencyBelow", "latency_ms", "max_ms"), ("CostBelow", "cost_usd", "max_usd")]


@pytest.mark.parametrize(("name", "field", "option"), LIMITS)
def test_the_limit_itself_passes(
    score: Callable[..., pl.DataFrame], name: str, field: str, option: str
) -> None:
    result = score(name, {field: ["0.5", "0.25", "0.500001", "2e3", "0"]}, **{option: 0.5})
    assert result["score"].to_list() == [1.0, 1.0, 0.0, 0.0, 1.0]
    assert result["reason"].to_list() == [
        None,
        None,
        "0.500001 is more than 0.5",
        "2000.0 is more than 0.5",
        None,
    ]
    assert result["details_json"][0] == f'{{"{field}":0.5,"{option}":0.5}}'


@pytest.mark.parametrize(("name", "field", "option"), LIMITS)
def test_what_is_no_number_is_an_error_and_what_is_missing_skipped(
    score: Callable[..., pl.DataFrame], name: str, field: str, option: str
) -> None:
    result = score(name, {field: ["NaN", "inf", "soon", None]}, **{option: 1})
    assert result["status"].to_list() == ["error"] * 3 + ["skipped"]
    assert result["error_code"].to_list() == ["no_number"] * 3 + [None]
    assert result["reason"].to_list() == [None] * 3 + [f"no {field}"]
    assert result["score"].null_count() == 4


@pytest.mark.parametrize(("name", "field", "option"), LIMITS)
@pytest.mark.parametrize("limit", [None, -1, "1", float("nan"), float("inf")])
def test_a_limit_is_a_number_and_has_to_be_given(
    score: Callable[..., pl.DataFrame], name: str, field: str, option: str, limit: object
) -> None:
    options: dict[str, Any] = {} if limit is None else {option: limit}
    with pytest.raises(ConfigError, match=rf"{name}\.{option}"):
        score(name, {field: ["1"]}, **options)
