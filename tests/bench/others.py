"""azure-ai-evaluation on a JSONL file; run by `metrics.py` in an environment of its own.

Its BLEU fetches tokeniser data when it runs; here it gets the tokeniser of the same library that needs none.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from importlib import import_module
from typing import Any


def build(metric: str) -> Any:
    """Return the evaluator of a metric."""
    azure: Any = import_module("azure.ai.evaluation")
    if metric == "rouge_l":
        return azure.RougeScoreEvaluator(rouge_type=azure.RougeType.ROUGE_L)
    if metric == "bleu":
        words: Any = import_module("nltk.tokenize").NLTKWordTokenizer()
        module: Any = import_module("azure.ai.evaluation._evaluators._bleu._bleu")
        module.nltk_tokenize = words.tokenize
        utils: Any = import_module("azure.ai.evaluation._common.utils")
        utils.ensure_nltk_data_downloaded = lambda: None
        return azure.BleuScoreEvaluator()
    return azure.F1ScoreEvaluator()


def main(metric: str, path: str) -> None:
    """Run `evaluate()` once and print rows, seconds, CPU seconds and peak memory."""
    azure: Any = import_module("azure.ai.evaluation")
    evaluator = build(metric)
    before, cpu = time.perf_counter(), time.process_time()
    result = azure.evaluate(data=path, evaluators={"m": evaluator})
    seconds, cpu = time.perf_counter() - before, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": len(result["rows"]), "seconds": seconds, "cpu": cpu, "peak": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:3])
