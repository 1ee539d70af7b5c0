"""Intake: the datasets and answers of a run, read once, as blocks of selected items."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import sha_text
from assay.contracts.tables import ITEMS, ROWS
from assay.datasets.reader import DISCOVERED, discover, find_datasets
from assay.engine.matching import Matcher
from assay.engine.selecting import Selector
from assay.errors import ConfigError, InputError, list_names
from evaluators.contract import FIELDS
from transforms.ids import IdRegister
from transforms.items import Items, build_block
from transforms.mapping import is_ambiguous, plain_mapping
from transforms.templates import Template, parse_template

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assay.config import RunConfig
    from assay.contracts.documents import EvaluatorUse
    from assay.datasets.contract import Dataset
    from assay.datasets.faults import Fault
    from assay.datasets.reader import Found

MAX_NOTICES = 20  # of one file, in the warnings of a run


class StoppedReadingError(Exception):
    """A reading ended because somebody asked for it."""


class Intake:
    """What comes into a run.

    Attributes:
        mapping: The user's mapping with bare column names written out.
        defaults: Index of each dataset opened so far to the evaluators it applies to every item.
        answers: The stored answers of `--responses`; None without.
        refused: Bad rows set aside so far, to be taken out by `take_refused`.
    """

    def __init__(
        self, config: RunConfig, repeats: frozenset[int] = frozenset(), found: Sequence[Found] | None = None
    ) -> None:
        """Find the files, settle the mapping and read the answers; no dataset is read whole.

        Args:
            config: What was asked for.
            repeats: Hashes of ids that an earlier reading found more than once.
            found: The files as that reading found them; None: they are looked for.

        Raises:
            InputError: A file is missing, or no dialect reads it.
            ConfigError: A mapping names a field that no evaluator has.
        """
        check_mapped_fields(config.mapping)
        self.config = config
        self.found = found or find_datasets(config.datasets or (_discover(),), config.reading)
        self.mapping = settle_mapping(self.found, config.mapping)
        self.defaults: dict[int, tuple[EvaluatorUse, ...] | None] = {}
        self.answers = None if config.responses is None else Matcher(config.responses)
        self.quarantined = 0
        self._register = IdRegister(repeats)
        self._selector = Selector(config)
        self._datasets: list[Dataset] = []
        self._warnings: list[str] = []
        self._stopped = False

    def stop(self) -> None:
        """End a reading that is under way in another thread, at its next block."""
        self._stopped = True

    def read_blocks(self) -> Iterator[Items]:
        """Read the datasets one after another, once.

        Yields:
            Selected items, whole conversations, in file order.

        Raises:
            InputError: A file is malformed or empty.
            ConfigError: Ids clash, or the selection leaves nothing.
            StoppedReadingError: It was stopped.
        """
        templates = supplying_templates(self.mapping)
        for index, found in enumerate(self.found):
            dataset = found.open()
            self.defaults[index] = dataset.defaults
            self._datasets.append(dataset)
            for rows in dataset.blocks:
                if self._stopped:
                    raise StoppedReadingError
                if rows.is_empty():
                    continue
                items = self._selector.select(build_block(rows, index, templates, self._register))
                if items.table.height:
                    yield items
            self._note(dataset)
        self._selector.check(refused=sum(len(dataset.faults) for dataset in self._datasets))

    def find_repeats(self) -> frozenset[int]:
        """Return hashes of ids that a second reading has to track; none when all ids are final."""
        return self._register.find_repeats()

    def take_refused(self) -> list[tuple[str, Fault]]:
        """Return file and fault of the bad rows set aside since the last call."""
        taken = [(data.file.shown, fault) for data in self._datasets for fault in data.faults.take()]
        self.quarantined = sum(len(data.faults) for data in self._datasets)
        return taken

    def _note(self, dataset: Dataset) -> None:
        notices = list(map(str, dataset.faults.notices))
        rest = len(notices) + dataset.faults.unsaid - MAX_NOTICES
        self._warnings += notices[:MAX_NOTICES]
        if rest > 0:
            self._warnings.append(f"{dataset.file.shown}: and {rest} more notices; see assay validate")
        if len(dataset.faults):
            count = len(dataset.faults)
            self._warnings.append(f"{dataset.file.shown}: {count} bad {dataset.faults.unit}s set aside")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, once everything was read."""
        answers = self.answers.warnings if self.answers else ()
        return (*self._warnings, *answers, *self._register.warnings)

    @property
    def paths(self) -> list[Path]:
        """The files of datasets and answers; what came through a pipe is not among them."""
        answers = [] if self.config.responses is None else [Path(self.config.responses)]
        return [found.file.path for found in self.found if found.file.keep is None] + answers

    @property
    def dataset_name(self) -> str:
        """Names of the datasets, joined."""
        return list_names(
            found.file.shown if found.file.keep else PurePath(found.file.shown).name for found in self.found
        )

    @property
    def dialect(self) -> str:
        """Dialects of the datasets, joined."""
        return ", ".join(sorted({found.dialect.name for found in self.found}))

    @property
    def sha256(self) -> str:
        """Hash of what was read: the datasets and the file of answers, whatever the selection."""
        parts = [dataset.digest() for dataset in self._datasets]
        if self.answers is not None:
            parts.append(self.answers.sha256)
        return sha_text(*parts) if len(parts) != 1 else parts[0]


def load_items(config: RunConfig) -> pl.DataFrame:
    """Return ITEMS of all datasets at once."""
    repeats: frozenset[int] = frozenset()
    found: Sequence[Found] | None = None
    while True:
        intake = Intake(config, repeats, found)
        found = intake.found
        blocks = [items.table for items in intake.read_blocks()]
        repeats = intake.find_repeats()
        if not repeats:
            return pl.concat(blocks) if blocks else ITEMS.empty()


def check_mapped_fields(mapping: Mapping[str, str]) -> None:
    """Refuse a mapping of something that is no field of any evaluator."""
    for key in mapping:
        field = key.rpartition(".")[2]
        if field not in FIELDS:
            raise ConfigError.unknown("field", field, FIELDS, where="--mapping")


def settle_mapping(found: Sequence[Found], mapping: Mapping[str, str]) -> dict[str, str]:
    """Write bare column names out as placeholders.

    A text that may be a column or a constant is looked up in the rows, which means reading the input
    once more when it is a constant.
    """
    settled = plain_mapping(ROWS.empty(), mapping)
    blocks = (rows for each in found for rows in each.open().blocks)
    while is_ambiguous(settled) and (rows := next(blocks, None)) is not None:
        settled = plain_mapping(rows, settled)
    return settled


def supplying_templates(mapping: Mapping[str, str]) -> dict[str, Template]:
    """Return the templates that hold for every evaluator, which may supply columns of the items."""
    return {
        field: parse_template(text, where=f"mapping {field}")
        for field, text in mapping.items()
        if "." not in field
    }


def _discover() -> str:
    name = discover()
    if name is None:
        raise InputError(f"no dataset named and none of these here: {', '.join(DISCOVERED)}", path=".")
    return name
