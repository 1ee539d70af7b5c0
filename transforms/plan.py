"""The plan: which evaluation is due for which item, with options, threshold and mapping resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

import polars as pl

from assay.contracts.documents import EvaluatorUse, parse_uses
from assay.contracts.json_text import dump_json, sha_text
from assay.contracts.tables import EVERY_ITEM, EVERY_TURN, PLAN, conform
from assay.errors import ConfigError, list_names
from transforms.conditions import check_conditions, parse_condition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.json_text import JsonValue
    from transforms.items import Items

SHA_DIGITS = 16
MOST_KINDS = 50_000  # kinds of items whose plan is remembered
SYSTEM_DEFAULTS = ("Relevance", "Coherence")
_PLACE = r',"where":"(?:[^"\\]|\\.)*"'  # where a file names a use; it makes no difference to the use
NONE_HERE = "[]"  # the evaluators_json of an item whose file says that nothing evaluates it
NO_EVALUATOR = (
    "no evaluator named: the dataset names none for some items; choose with --evaluators "
    "ExactMatch,PartialMatch (see `assay evaluators`), or give a judge (--judge MODEL) for "
    f"{' and '.join(SYSTEM_DEFAULTS)}"
)


_Row: TypeAlias = "tuple[str, str, str, float | None, str, str, str | None]"
_EVALUATION = {name: dtype for name, dtype in PLAN.columns.items() if name not in {"item_id", "turn"}}


class Resolved(Protocol):
    """An evaluation whose name and options have been checked."""

    @property
    def label(self) -> str:
        """Canonical name, with the file's own name for it after a colon."""
        ...

    @property
    def options_json(self) -> str:
        """All options, defaults included."""
        ...

    @property
    def threshold(self) -> float | None:
        """Score that passes."""
        ...

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields it reads."""
        ...

    @property
    def mapping(self) -> Mapping[str, str]:
        """Field to template, as far as the options say it."""
        ...


R = TypeVar("R", bound=Resolved)
R_co = TypeVar("R_co", bound=Resolved, covariant=True)


class Catalog(Protocol[R_co]):
    """The evaluators that exist, and their check of names and options."""

    def label(self, name: str, *, where: str) -> str:
        """Return `CanonicalName` or `CanonicalName:Instance`, or raise ConfigError."""
        ...

    def resolve(self, name: str, options: Mapping[str, JsonValue], *, where: str) -> R_co:
        """Return the checked evaluation, or raise ConfigError."""
        ...


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What the user asked for on top of the files.

    Attributes:
        evaluators: Names that replace those of the files, or come on top of them.
        add: Whether they come on top.
        options: Evaluator name to option to value.
        mapping: `FIELD` or `EVALUATOR.FIELD` to template.
        has_judge: Whether a judge is configured.
        implied: Options that other settings bring along, for evaluators that may not run at all.
    """

    evaluators: tuple[str, ...]
    add: bool
    options: Mapping[str, Mapping[str, JsonValue]]
    mapping: Mapping[str, str]
    has_judge: bool
    implied: Mapping[str, Mapping[str, JsonValue]] = field(
        default_factory=dict[str, "Mapping[str, JsonValue]"]
    )


def build_plan(
    items: Items,
    defaults: Sequence[tuple[EvaluatorUse, ...] | None],
    request: PlanRequest,
    catalog: Catalog[Resolved],
) -> pl.DataFrame:
    """Resolve every item's evaluations once; see `Planner`, which does it block by block."""
    planner = Planner(request, catalog)
    plan = planner.plan_block(items, dict(enumerate(defaults)))
    planner.check()
    return plan


def expand_plan(plan: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Return PLAN with one row per item, turn and evaluation of `items`."""
    keys = items.select("item_id", "turn")
    shared = plan.filter(pl.col("turn") == EVERY_TURN)
    if shared.height:
        return keys.join(shared.drop("item_id", "turn"), how="cross", maintain_order="left_right").select(
            *PLAN.columns
        )
    return keys.join(plan, on=["item_id", "turn"], maintain_order="left_right").select(*PLAN.columns)


class Planner(Generic[R]):
    """Resolves the evaluations of items against the user's overrides, each kind of item once."""

    def __init__(self, request: PlanRequest, catalog: Catalog[R]) -> None:
        """Start without any item.

        Args:
            request: What the user asked for.
            catalog: The evaluators that exist.

        Raises:
            ConfigError: An override names an unknown evaluator.
        """
        self.request, self.catalog = request, catalog
        self._fresh: dict[tuple[str, str], tuple[R, str]] = {}
        self._kinds: dict[tuple[object, ...], list[_Row]] = {}
        self._evaluates = False
        self.labels: dict[str, None] = {}
        self.options: dict[str, dict[str, JsonValue]] = {}
        for owner, values in request.options.items():
            self.options.setdefault(catalog.label(owner, where="--option"), {}).update(values)
        self.mapping: dict[str, dict[str, str]] = {}
        for key, text in request.mapping.items():
            owner, _, field = key.rpartition(".")
            label = catalog.label(owner, where="--mapping") if owner else ""
            self.mapping.setdefault(label, {})[field] = text

    def plan_block(
        self, items: Items, defaults: Mapping[int, tuple[EvaluatorUse, ...] | None]
    ) -> pl.DataFrame:
        """Resolve the evaluations of a block of items.

        Args:
            items: The items with the evaluators their files name.
            defaults: Index of each document to the evaluators it applies to every item.

        Returns:
            PLAN. When all items of the block share one plan its rows carry `EVERY_ITEM` and `EVERY_TURN`.

        Raises:
            ConfigError: An unknown evaluator or option, or an item without any evaluator whose file does
                not say so.
        """
        keyed = items.uses.with_columns(same=pl.col("evaluators_json").str.replace_all(_PLACE, ""))
        same = ["document", "same", "evaluators_mode"]
        kinds = keyed.unique(same, keep="first", maintain_order=True).with_row_index("kind")
        plans = [self._plan_row(row, defaults) for row in kinds.iter_rows(named=True)]
        if all(plan == plans[0] for plan in plans):
            shared = pl.DataFrame(plans[0], schema=_EVALUATION, orient="row")
            return conform(shared.with_columns(item_id=pl.lit(EVERY_ITEM), turn=pl.lit(EVERY_TURN)), PLAN)
        every = [evaluation for plan in plans for evaluation in plan]
        numbers = [number for number, plan in enumerate(plans) for _ in plan]
        numbered = pl.DataFrame(every, schema=_EVALUATION, orient="row").with_columns(
            pl.Series("kind", numbers, kinds.schema["kind"])
        )
        rows = keyed.join(kinds, on=same, nulls_equal=True, maintain_order="left")
        turns = items.table.select("item_id", "turn").with_columns(rows["kind"])
        return conform(turns.join(numbered, on="kind", maintain_order="left_right").drop("kind"), PLAN)

    def _plan_row(
        self, row: Mapping[str, object], defaults: Mapping[int, tuple[EvaluatorUse, ...] | None]
    ) -> list[_Row]:
        """Return the plan of a kind of item, made once."""
        document = int(str(row["document"]))
        key = (document, row["same"], row["evaluators_mode"])
        if key not in self._kinds:
            uses = self.merge_uses(row, defaults[document])
            if not uses and row["evaluators_json"] != NONE_HERE:
                raise ConfigError(NO_EVALUATOR)
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()  # an input where every item has its own options must not fill the memory
            self._kinds[key] = self.plan_kind(uses)
            self._evaluates |= bool(uses)
        return self._kinds[key]

    def check(self) -> None:
        """Judge the plan as a whole, once all blocks are planned.

        Raises:
            ConfigError: Nothing is evaluated at all, or an override names what does not run.
        """
        if not self._evaluates:
            raise ConfigError(NO_EVALUATOR)
        self.check_overrides()

    def merge_uses(
        self, row: Mapping[str, object], defaults: tuple[EvaluatorUse, ...] | None
    ) -> list[EvaluatorUse]:
        """Combine a file's defaults, an item's own evaluators and the user's names."""
        asked = [EvaluatorUse(name, where="--evaluators") for name in self.request.evaluators]
        if asked and not self.request.add:
            return asked
        own_json = row["evaluators_json"]
        own = parse_uses(str(own_json)) if own_json is not None else ()
        base: Sequence[EvaluatorUse] = defaults or ()
        if defaults is None and self.request.has_judge and not asked:
            base = [EvaluatorUse(name, where="default") for name in SYSTEM_DEFAULTS]
        if row["evaluators_mode"] == "replace":
            base = ()
        merged = {self._label(use): use for use in (*base, *own)}
        for use in asked:
            merged.setdefault(self._label(use), use)
        return list(merged.values())

    def _label(self, use: EvaluatorUse) -> str:
        return self.catalog.label(_name_use(use), where=use.where)

    def plan_kind(self, uses: Sequence[EvaluatorUse]) -> list[_Row]:
        """Return what is planned, but for item and turn, for items that share these uses."""
        rows = {(row[0], row[1]): row for row in map(self._resolve, uses)}
        conditions = {row[0]: row[-1] for row in rows.values()}
        if any(conditions.values()):
            labels = {self._label(use): use for use in uses}
            check_conditions(conditions, {k: self._place_condition(k, use) for k, use in labels.items()})
        return list(rows.values())

    def _resolve(self, use: EvaluatorUse) -> _Row:
        label = self._label(use)
        owners = ("", label.split(":", 1)[0], label)  # the narrower wins
        options = {**use.options, **self.request.implied.get(owners[1], {})}
        mapping = dict(use.mapping)
        for owner in owners:
            options |= self.options.get(owner, {})
        condition = options.pop("only_if", None)
        if condition is not None:
            where = self._place_condition(label, use)
            condition = parse_condition(condition, partial(self.catalog.label, where=where), where)
        evaluation = self.catalog.resolve(_name_use(use), options, where=use.where)
        mapping |= evaluation.mapping
        for owner in owners:
            mapping |= self.mapping.get(owner, {})
        self.labels |= dict.fromkeys(owners)
        used = {field: mapping[field] for field in sorted(mapping) if field in evaluation.fields}
        mapping_json = dump_json(used) if used else "{}"
        options_json = evaluation.options_json
        told = (options_json, repr(evaluation.threshold), mapping_json)
        sha = sha_text(*told, *([condition] if condition else []))[:SHA_DIGITS]
        self._fresh[label, sha] = (evaluation, mapping_json)
        return label, sha, options_json, evaluation.threshold, "turn", mapping_json, condition

    def _place_condition(self, label: str, use: EvaluatorUse) -> str:
        """Return where it stands what an evaluation waits for."""
        owners = (label, label.split(":", 1)[0])
        return "--only-if" if any("only_if" in self.options.get(each, {}) for each in owners) else use.where

    def take_fresh(self) -> dict[tuple[str, str], tuple[R, str]]:
        """Return what was resolved since the last call: label and hash to evaluation and mapping."""
        fresh, self._fresh = self._fresh, {}
        return fresh

    def check_overrides(self) -> None:
        """Refuse `--option` and `--mapping` that name an evaluator which does not run."""
        for name, owners in (("--option", self.options), ("--mapping", self.mapping)):
            for owner, values in owners.items():
                if owner not in self.labels and owner:
                    flag = "--only-if" if [*values] == ["only_if"] else name
                    running = list_names(sorted(filter(None, self.labels)))
                    raise ConfigError(f"{flag}: {owner} does not run here; running: {running}")


def _name_use(use: EvaluatorUse) -> str:
    return f"{use.evaluator}:{use.name}" if use.name else use.evaluator
