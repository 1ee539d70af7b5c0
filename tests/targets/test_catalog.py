"""What every kind of target promises."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, get_args

import polars as pl
import pytest

from assay.chat.traffic import Traffic
from assay.config import RunConfig, TargetKind
from assay.contracts.tables import ITEMS, SAMPLES, conform
from assay.targets.catalog import TARGETS, build_target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.targets.contract import Work
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


def build_config(kind: str, loopback: Loopback, folder: Path) -> RunConfig:
    """Return a configuration in which everything that answers says `stored` or `ok`."""
    url = loopback.azure_url if kind == "azure" else loopback.base_url
    (folder / "answer.py").write_text("def answer(query):\n    return 'ok'\n", encoding="utf-8")
    (folder / "http.toml").write_text(
        f'url = "{loopback.base_url}/chat/completions"\n'
        '[headers]\nauthorization = "Bearer ${OPENAI_API_KEY}"\n'
        '[body]\nmodel = "m"\nmessages = "{{messages}}"\n',
        encoding="utf-8",
    )
    places = {
        "python": f"{folder / 'answer.py'}:answer",
        "cmd": f"{sys.executable} -c \"print('ok')\"",
        "http": str(folder / "http.toml"),
    }
    asked = kind in {"openai", "azure"}
    endpoint = {"model": "m", "base_url": url} if asked else None
    target = {"kind": kind, "place": places.get(kind), "endpoint": endpoint}
    return RunConfig.model_validate({"datasets": ("x",), "target": target})


def test_catalog_holds_every_kind_of_the_configuration() -> None:
    assert [kind.name for kind in TARGETS] == list(get_args(TargetKind))
    assert all(kind.summary for kind in TARGETS)


@pytest.mark.parametrize("kind", [kind.name for kind in TARGETS])
@pytest.mark.parametrize("count", [0, 6])
async def test_every_target_gives_one_sample_per_item_row(
    loopback: Loopback, kind: str, count: int, tmp_path: Path, make_work: Callable[..., Work]
) -> None:
    items, done = build_items(count), list[bool]()
    config = build_config(kind, loopback, tmp_path)
    target = build_target(config, Traffic(config))
    try:
        samples = await target.fetch_samples(items, make_work(done))
    finally:
        await target.aclose()
    with_run = samples.with_columns(run_id=pl.lit("r"))
    assert conform(with_run, SAMPLES).drop("run_id").equals(samples)
    assert samples.columns == [name for name in SAMPLES.columns if name != "run_id"]
    assert samples.select("item_id", "turn").equals(items.select("item_id", "turn"))
    assert samples["status"].to_list() == ["ok"] * count
    assert samples["output_text"].to_list() == ["stored" if kind == "stored" else "ok"] * count
    assert samples["trial"].to_list() == [0] * count
    assert done == [True] * count


@pytest.mark.parametrize("kind", ["openai", "azure"])
async def test_kind_of_the_target_decides_which_route_is_called(
    loopback: Loopback, kind: str, tmp_path: Path, make_work: Callable[..., Work]
) -> None:
    config = build_config(kind, loopback, tmp_path)
    target = build_target(config, Traffic(config))
    await target.fetch_samples(build_items(2), make_work())
    await target.aclose()
    prefix = {"openai": "/v1/", "azure": "/openai/deployments/m/"}[kind]
    assert all(request["path"].startswith(prefix) for request in loopback.requests)
