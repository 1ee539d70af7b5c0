"""Evaluators beside other tools, each in a process of its own over the same generated rows.

Run by `make bench-evaluators`: python tests/bench/metrics.py PYTHON-WITH-AZURE ROWS…
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.settings import Settings

OTHERS = Path(__file__).with_name("others.py")
BATCH = 10_000
OPTIONS = 20_000  # items with options of their own
SLOW = 10_000  # rows that are enough to time a tool which scores row by row
USES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "F1 compat": ("f1", "F1Score", {}),
    "F1 unicode": ("f1", "F1Score", {"mode": "unicode"}),
    "ROUGE-L compat": ("rouge_l", "RougeScore", {"rouge_type": "rougeL"}),
    "ROUGE-L unicode": ("rouge_l", "RougeScore", {"rouge_type": "rougeL", "mode": "unicode"}),
    "BLEU compat": ("bleu", "BleuScore", {}),
    "BLEU unicode": ("bleu", "BleuScore", {"mode": "unicode"}),
    "GLEU unicode": ("gleu", "GleuScore", {"mode": "unicode"}),
    "METEOR compat": ("meteor", "MeteorScore", {}),
    "exact match": ("exact", "ExactMatch", {}),
    "contains": ("contains", "Contains", {}),
    "Levenshtein": ("levenshtein", "Levenshtein", {}),
    "chrF": ("chrf", "ChrF", {}),
}


def read_pairs(path: str) -> pl.DataFrame:
    """Read the columns that evaluators compare."""
    rows = pl.read_ndjson(path)
    return rows.select("response", expected_response="ground_truth")


def run_assay(use: str, path: str) -> Callable[[], int]:
    """Score batches with the runner, thresholds and details included."""
    from evaluators.catalog import resolve_evaluation
    from evaluators.runner import run_evaluation

    _, name, options = USES[use]
    evaluation, rows = resolve_evaluation(name, options), read_pairs(path)

    async def score() -> int:
        parts = [await run_evaluation(evaluation, part, None) for part in rows.iter_slices(BATCH)]
        return sum(part.height for part in parts)

    return lambda: asyncio.run(score())


def run_loop(metric: str, path: str) -> Callable[[], int]:
    """Score with the library for one pair, in a plain loop."""
    rows = read_pairs(path).head(SLOW).rows()
    score = LOOPS[metric]()
    return lambda: len([score(answer, reference) for answer, reference in rows])


def run_column(metric: str, path: str) -> Callable[[], int]:
    """Do the least a column can do: compare or search after lower-casing, or rapidfuzz over lists."""
    rows = read_pairs(path)
    if metric == "levenshtein":
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cpdist

        answers, references = (rows[name].to_list() for name in rows.columns)
        return lambda: len(cpdist(answers, references, scorer=Levenshtein.normalized_similarity, workers=2))
    answer, reference = (pl.col(name).str.to_lowercase() for name in rows.columns)
    found = answer == reference if metric == "exact" else answer.str.contains(reference, literal=True)
    return lambda: rows.select(found).height


def _loop_f1() -> Callable[[str, str], float]:
    def score(answer: str, reference: str) -> float:
        found, wanted = Counter(answer.lower().split()), Counter(reference.lower().split())
        common = sum((found & wanted).values())
        return 2 * common / (found.total() + wanted.total()) if common else 0.0

    return score


def _loop_rouge() -> Callable[[str, str], float]:
    scorer: Any = import_module("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    return lambda answer, reference: scorer.score(reference, answer)["rougeL"].fmeasure


def _loop_bleu() -> Callable[[str, str], float]:
    import sacrebleu

    return lambda answer, reference: sacrebleu.sentence_bleu(answer, [reference]).score


def _loop_chrf() -> Callable[[str, str], float]:
    import sacrebleu

    return lambda answer, reference: sacrebleu.sentence_chrf(answer, [reference]).score


LOOPS: dict[str, Callable[[], Callable[[str, str], float]]] = {
    "f1": _loop_f1,
    "rouge_l": _loop_rouge,
    "bleu": _loop_bleu,
    "chrf": _loop_chrf,
}
COLUMNS = ("exact", "contains", "levenshtein")


def run_whole_job(evaluators: str, path: str) -> Callable[[], int]:
    """Read, score and write a whole run."""
    import assay

    def run() -> int:
        with tempfile.TemporaryDirectory() as store:
            settings: Settings = {"store": store, "engine": "local"}
            if evaluators:
                settings["evaluators"] = evaluators
            return assay.run(path, **settings).samples.height

    return run


def measure(kind: str, what: str, path: str) -> None:
    """Warm up on the first rows, run once and print rows, seconds, CPU seconds and peak memory."""
    build = {"assay": run_assay, "loop": run_loop, "column": run_column, "job": run_whole_job}[kind]
    if kind != "job":
        build(what, str(Path(path).with_name("warm.jsonl")))()
    work = build(what, path)
    before, cpu = time.perf_counter(), time.process_time()
    rows = work()
    seconds, cpu = time.perf_counter() - before, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": rows, "seconds": seconds, "cpu": cpu, "peak": peak}))


def call(command: list[str]) -> dict[str, float]:
    """Run one measurement in a process of its own."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def show(label: str, found: dict[str, float], bases: dict[str, float]) -> float:
    """Print one line, and how many times as fast as each base it is."""
    rate = found["rows"] / found["seconds"]
    ratios = "  ".join(f"{rate / base:.1f}x {name}" for name, base in bases.items())
    cpu = found["cpu"] / found["rows"] * 1e6
    print(
        f"{label:28}{found['rows']:>10,} {rate:>12,.0f} {cpu:>10.2f} {found['peak']:>8.0f}  {ratios}",
        flush=True,
    )
    return rate


def compare(azure: str, rows: int, folder: Path) -> None:
    """Print one line per tool and metric for so many rows."""
    from texts import make_pairs

    path, few = folder / f"pairs{rows}.jsonl", folder / f"few{rows}.jsonl"
    pairs = make_pairs(rows).with_columns(pl.int_range(pl.len()).cast(pl.String).alias("id"))
    pairs.write_ndjson(path)
    pairs.head(SLOW).write_ndjson(few)
    pairs.head(3_000).write_ndjson(folder / "warm.jsonl")
    print(f"\n{'':28}{'rows':>10} {'rows/s':>12} {'CPU us/row':>10} {'peak MB':>8}")
    bases: dict[str, dict[str, float]] = {}
    own = [sys.executable, __file__, "--measure"]
    for metric in ("f1", "rouge_l", "bleu"):
        rate = show(f"azure evaluate() {metric}", call([azure, str(OTHERS), metric, str(few)]), {})
        bases[metric] = {"azure": rate}
    for metric in LOOPS:
        rate = show(f"loop {metric}", call([*own, "loop", metric, str(path)]), {})
        bases.setdefault(metric, {})["loop"] = rate
    for metric in COLUMNS:
        rate = show(f"bare column {metric}", call([*own, "column", metric, str(path)]), {})
        bases.setdefault(metric, {})["column"] = rate
    for use, (metric, _, _) in USES.items():
        rows_of = few if metric == "meteor" else path
        show(f"assay {use}", call([*own, "assay", use, str(rows_of)]), bases.get(metric, {}))
    names = "ExactMatch,PartialMatch,Citations"
    show("whole job, three evaluators", call([*own, "job", names, str(path)]), {})


def write_items(path: Path, *, own: bool) -> None:
    """Write items that share their options, or have each their own."""
    items = [
        {
            "prompt": f"question {n}",
            "response": f"the answer to question {n} is word{n}",
            "expected_response": f"word{n}",
            "evaluators": {
                "Contains": {"search_text": f"word{n}" if own else "word1"},
                "PartialMatch": {"threshold": (n + 1) / (OPTIONS + 1) if own else 0.5},
            },
        }
        for n in range(OPTIONS)
    ]
    path.write_text(json.dumps({"schemaVersion": "1.8.0", "items": items}), encoding="utf-8")


def compare_options(folder: Path) -> None:
    """Print a whole run over items of one option each and of their own."""
    rates: dict[str, float] = {}
    own = [sys.executable, __file__, "--measure", "job", ""]
    for label in ("one option", "own options"):
        path = folder / f"{label.split()[0]}.json"
        write_items(path, own=label == "own options")
        rates[label] = show(f"{OPTIONS:,} items, {label}", call([*own, str(path)]), rates)


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        measure(*sys.argv[2:5])
    else:
        with tempfile.TemporaryDirectory() as place:
            compare_options(Path(place))
            for count in sys.argv[2:]:
                compare(sys.argv[1], int(count), Path(place))
