"""Estimating: what the stages of a run will take in calls, tokens, money and minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from assay.chat.prices import check_priced, read_prices
from assay.config import Limits, RunConfig
from assay.engine.figures import Figures, read_judge_figures, read_target_figures
from assay.engine.prepare import Prepared, pin_runs
from assay.engine.request import RunRequest
from assay.engine.walking import BYTES, Count, walk_run
from assay.errors import ConfigError
from assay.store.folders import find_folder
from assay.store.layout import open_store
from assay.store.parts import read_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from assay.chat.prices import Prices

TOTAL = "total"
COLUMNS = pl.Schema(
    {
        "stage": pl.String,
        "rows": pl.Int64,
        "hits": pl.Int64,
        "calls": pl.Int64,
        "tokens_in": pl.Int64,
        "tokens_out": pl.Int64,
        "usd_low": pl.Float64,
        "usd": pl.Float64,
        "usd_high": pl.Float64,
        "minutes": pl.Float64,
    }
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will take.

    Attributes:
        stages: COLUMNS, one row per stage and one of name `total`; money is null where no price is known.
        notes: Where the figures come from, and what ends the run before its end.
        title: Names and dialects of the datasets.
        items: Items.
        warnings: What the user should know of the input.
    """

    stages: pl.DataFrame
    notes: tuple[str, ...]
    title: str
    items: int
    warnings: tuple[str, ...]


def estimate_run(config: RunConfig, on_rows: Callable[[int], None] = lambda _: None) -> Estimate:
    """Estimate a new run; nothing is called and nothing is written to the store.

    Args:
        config: What is asked for.
        on_rows: Told how many rows were looked at.

    Raises:
        SetupError: What the run would refuse, but for a missing key.
    """
    return _estimate(pin_runs(config), None, on_rows)


def estimate_rest(
    reference: str,
    store: str,
    changes: Mapping[str, object],
    on_rows: Callable[[int], None] = lambda _: None,
) -> Estimate:
    """Estimate what is left of a run that goes on; see `estimate_run`.

    Args:
        reference: The run.
        store: Root of the store.
        changes: Parts of its configuration to take anew, those of `limits` one by one.
        on_rows: Told how many rows were looked at.

    Raises:
        ConfigError: There is no such run.
    """
    folder = find_folder(open_store(store, create=False), reference)
    request = RunRequest.model_validate(read_request(folder))
    if not request.whole:
        raise ConfigError(
            f"--resume {folder.run_id}: its input was not read to the end; there is no rest of it"
        )
    limits = {name: value for name, value in changes.items() if name in Limits.model_fields}
    rest = {name: value for name, value in changes.items() if name not in limits}
    merged = {"store": store, "limits": request.config.limits.model_dump() | limits}
    config = RunConfig.model_validate(request.config.model_dump() | rest | merged)
    return _estimate(config, Prepared(folder, request), on_rows)


def _estimate(config: RunConfig, resumed: Prepared | None, on_rows: Callable[[int], None]) -> Estimate:
    prices = read_prices(config.limits.prices)
    check_priced(config, prices)
    target, judges = _cap(read_target_figures(config), config), read_judge_figures(config)
    walk = walk_run(config, resumed, reply_tokens=target.mean, on_rows=on_rows)
    stages: list[Stage] = []
    if config.target.kind != "stored":
        model = config.target.endpoint.model if config.target.endpoint else None
        stages.append(Stage(f"target {config.target.name}", walk.target, target, model, walk.at_once[0]))
    for (name, model), count in walk.judges.items():
        by = f" by {model}" if len(config.judges) > 1 else ""
        figures = judges.get(name, Figures())
        stages.append(Stage(f"judge {name}{by}", count, figures, model, walk.at_once[1]))
    rows = [stage.describe(prices, config.limits) for stage in stages]
    if walk.plain:
        free = Stage("evaluators without a model", Count(rows=walk.plain), Figures(), None, 1)
        rows.append(free.describe(prices, config.limits))
    table = pl.DataFrame(rows, schema=COLUMNS)
    total = _add_up(table)
    notes = (*_explain(stages, prices), *_foresee(total.row(0, named=True), config))
    return Estimate(pl.concat([table, total]), notes, walk.title, walk.items, walk.warnings)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage that calls somebody.

    Attributes:
        name: What it is called in the table.
        count: What it asks.
        figures: What a call is expected to come to.
        model: The model that answers; None: no model of ours.
        at_once: Most calls under way at one time.
    """

    name: str
    count: Count
    figures: Figures
    model: str | None
    at_once: int

    def describe(self, prices: Prices, limits: Limits) -> dict[str, object]:
        """Return the row of the table."""
        calls, figures = self.count.calls, self.figures
        given = self.count.size * figures.per_byte
        low, said, high = (calls * each for each in (figures.low, figures.mean, figures.high))
        price = prices.find(self.model) if self.model else None

        def pay(output: float) -> float | None:
            if price is None:
                return None if calls else 0.0
            return given * price.input + output * price.output

        minutes = [calls * figures.latency_ms / 60_000 / max(1, min(self.at_once, calls))]
        minutes += [calls / limits.rpm] if limits.rpm else []
        minutes += [(given + said) / limits.tpm] if limits.tpm else []
        return {
            "stage": self.name,
            "rows": self.count.rows,
            "hits": self.count.hits,
            "calls": calls,
            "tokens_in": round(given),
            "tokens_out": round(said),
            "usd_low": pay(low),
            "usd": pay(said),
            "usd_high": pay(high),
            "minutes": max(minutes),
        }

    def explain(self) -> str:
        """Say what its calls are expected to be like."""
        figures = self.figures
        sizes = f"{figures.low:.0f} / {figures.mean:.0f} / {figures.high:.0f} tokens"
        weight = f", {figures.per_byte:.2f} tokens per byte asked" if figures.is_weighed else ""
        return f"answers of {sizes}, {figures.latency_ms / 1000:.2g} s a call{weight}"


def _cap(figures: Figures, config: RunConfig) -> Figures:
    """Let no answer be longer than the target may make it."""
    most = config.target.sampling.max_output_tokens
    if most is None:
        return figures
    low, mean, high = (min(each, most) for each in (figures.low, figures.mean, figures.high))
    return replace(figures, low=low, mean=mean, high=high)


def _add_up(table: pl.DataFrame) -> pl.DataFrame:
    """Return the row of totals; money is that of the stages whose price is known."""
    sums = {
        name: sum(values) if (values := table[name].drop_nulls().to_list()) or not table.height else None
        for name in table.columns[1:]
    }
    return pl.DataFrame([{"stage": TOTAL, **sums}], schema=COLUMNS)


def _explain(stages: list[Stage], prices: Prices) -> list[str]:
    """Say where the figures come from."""
    asked = [stage for stage in stages if stage.count.calls]
    if not asked:
        return ["no model is called"]
    notes = _explain_stages(asked)
    notes.append("low, usd, high: every answer as short as one in ten, as the mean, as long as one in ten")
    if not all(stage.figures.is_weighed for stage in asked):
        notes.append(f"tokens in: the requests as they would be sent, {BYTES} bytes a token")
    if asked[0].name.startswith("target "):
        length = f"{asked[0].figures.mean:.0f} tokens"
        notes.append(
            f"where a judge or a next turn reads an answer to come, one of {length} stands in for it"
        )
    unpriced = [each for each in asked if each.model is None or prices.find(each.model) is None]
    if unpriced:
        names = ", ".join(dict.fromkeys(each.model or each.name for each in unpriced))
        notes.append(f"no price is known of {names}, and the total is without; --prices FILE tells it")
    return [*notes, f"{prices.origin}; nothing is taken off for cached input"]


def _explain_stages(asked: list[Stage]) -> list[str]:
    notes: list[str] = []
    assumed: dict[str, list[str]] = {}
    for stage in asked:
        if stage.figures.calls:
            notes.append(f"{stage.name}: as in {stage.figures.calls} earlier calls: {stage.explain()}")
        else:
            assumed.setdefault(stage.explain(), []).append(stage.name)
    return notes + [
        f"{', '.join(names)}: assumed, for want of earlier calls: {what}" for what, names in assumed.items()
    ]


def _foresee(total: Mapping[str, float | None], config: RunConfig) -> list[str]:
    """Say which limit ends the run before its end."""
    limits = config.limits
    tokens = (total["tokens_in"] or 0) + (total["tokens_out"] or 0)
    bounds = (
        ("--max-cost", limits.max_cost, total["usd"] or 0.0),
        ("--max-tokens-total", limits.max_tokens, tokens),
        ("--deadline", limits.deadline_s, (total["minutes"] or 0.0) * 60),
    )
    return [
        f"{option} {bound:g} ends the run after about {bound / expected:.0%} of it; items come in an order "
        f"that seed {limits.order_seed} draws, so what is finished is a fair sample"
        for option, bound, expected in bounds
        if bound is not None and expected > bound
    ]
