"""What `prepare` leaves in the run folder for the batches and the commit."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotation

from pydantic import BaseModel, ConfigDict

from assay.config import RunConfig  # noqa: TC001 - pydantic reads the annotation


class FileMark(BaseModel):
    """A file that a run was made of, and the hash it had."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    sha256: str


class RunRequest(BaseModel):
    """A prepared run.

    Attributes:
        config: What was asked for; it holds no secrets.
        batches: Number of parts.
        turns: Rows of ITEMS.
        evaluations: Rows of the expanded plan.
        calls: Model calls that are planned, retries aside.
        dataset_name: Names of the datasets, joined.
        dataset_sha256: Hash over the hashes of the datasets and answers.
        dialect: Dialects of the datasets, joined.
        quarantined: Bad rows that were set aside.
        evaluator_set_sha: Hash over what the plan evaluates, whatever the items.
        shuffled: Whether the items are in a random order.
        whole: Whether the input was read to its end.
        files: The datasets and answers of a run that calls models, to be told from changed ones.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    config: RunConfig
    started_at: datetime
    batches: int
    items: int
    turns: int
    evaluations: int
    calls: int
    dataset_name: str
    dataset_sha256: str
    dialect: str
    evaluator_set_sha: str
    quarantined: int = 0
    shuffled: bool = False
    whole: bool = True
    files: tuple[FileMark, ...] = ()
    warnings: tuple[str, ...]
