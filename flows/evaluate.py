"""Evaluate datasets: one flow run per evaluation, one task run per batch."""

from dataclasses import asdict

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from assay.engine.steps import commit_prepared, load_prepared, prepare_file, shared_tools, work_batch


@task(name="batch", task_run_name="batch-{index}", cache_policy=NO_CACHE, persist_result=False)
async def evaluate_batch(store: str, run_id: str, index: int) -> int:
    """Fetch, score and store one batch; return how many evaluations ended in an error."""
    return await work_batch(store, run_id, index)


@flow(name="evaluate", persist_result=False)
async def evaluate(config: str = "", store: str = "", run_id: str = "") -> dict[str, str | int]:
    """Run an evaluation and commit it to the store.

    One batch runs at a time, so that the run's own limit on concurrent calls holds.

    Args:
        config: JSON file of a run configuration; for schedules and deployments.
        store: Root of the store that holds the prepared run.
        run_id: A run that is prepared already; `config` is then left out.

    Returns:
        Run id, status, exit code and message of the outcome.
    """
    prepared = load_prepared(store, run_id) if run_id else prepare_file(config)
    root, name = str(prepared.folder.store.root), prepared.request.run_id
    async with shared_tools(root, name):
        for index in range(prepared.request.batches):
            await evaluate_batch(root, name, index)
        return asdict(commit_prepared(root, name, engine="prefect", flow_run_id=str(flow_run.id)))
