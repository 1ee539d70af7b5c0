"""What every kind of target promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import polars as pl
import pytest

from assay.config import RunConfig, TargetKind
from assay.contracts.tables import ITEMS, SAMPLES, conform
from assay.targets.catalog import TARGETS, build_target

if TYPE_CHECKING:
    from tests.conftest import Loopback

pytestmark = pytest.mark.usefixtures("api_key")


def build_items(count: int) -> pl.DataFrame:
    rows = pl.DataFrame(
        {"item_id": [f"i{place // 2}" for place in range(count)]}, schema={"item_id": pl.String}
    )
    return conform(
        rows.with_columns(
            turn=pl.int_range(count) % 2,
            turn_count=2,
            item_sha=pl.lit("sha"),
            source_file=pl.lit("x.json"),
            tags=pl.lit([], pl.List(pl.String)),
            query=pl.lit("hello"),
            response=pl.lit("stored"),
            item_json=pl.lit("{}"),
        ),
        ITEMS,
    )


def build_config(kind: str, loopback: Loopback) -> RunConfig:
    url = loopback.azure_url if kind == "azure" else loopback.base_url
    endpoint = None if kind == "stored" else {"model": "m", "base_url": url}
    return RunConfig.model_validate({"datasets": ("x",), "target": {"kind": kind, "endpoint": endpoint}})


def test_catalog_holds_every_kind_of_the_configuration() -> None:
    assert [kind.name for kind in TARGETS] == list(get_args(TargetKind))
    assert all(kind.summary for kind in TARGETS)


@pytest.mark.parametrize("kind", [kind.name for kind in TARGETS])
@pytest.mark.parametrize("count", [0, 6])
async def test_every_target_gives_one_sample_per_item_row(loopback: Loopback, kind: str, count: int) -> None:
    items, done = build_items(count), list[bool]()
    target = build_target(build_config(kind, loopback))
    try:
        samples = await target.fetch_samples(items, done.append)
    finally:
        await target.aclose()
    with_run = samples.with_columns(run_id=pl.lit("r"))
    assert conform(with_run, SAMPLES).drop("run_id").equals(samples)
    assert samples.columns == [name for name in SAMPLES.columns if name != "run_id"]
    assert samples.select("item_id", "turn").equals(items.select("item_id", "turn"))
    assert samples["status"].to_list() == ["ok"] * count
    assert samples["trial"].to_list() == [0] * count
    assert done == [True] * count


@pytest.mark.parametrize("kind", ["openai", "azure"])
async def test_kind_of_the_target_decides_which_route_is_called(loopback: Loopback, kind: str) -> None:
    target = build_target(build_config(kind, loopback))
    await target.fetch_samples(build_items(2), lambda _: None)
    await target.aclose()
    prefix = {"openai": "/v1/", "azure": "/openai/deployments/m/"}[kind]
    assert all(request["path"].startswith(prefix) for request in loopback.requests)
