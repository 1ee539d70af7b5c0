"""DocumentRetrieval: how well a search ranked documents whose relevance is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from assay.errors import CallError
from evaluators.contract import Options, RowEvaluator, Verdict
from evaluators.json_fields import BAD_FIELD, read_field, read_objects, refuse_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields

_Id: TypeAlias = "str | int | float"
K = 3  # ranks that NDCG and XDCG look at
MAX_DOCUMENTS = 10_000
_DISCOUNT = 0.6  # of XDCG, per rank
_LABEL_WEIGHT = 25.0  # of XDCG: label 4 weighs 100
_PRIMARY = f"ndcg@{K}"
_RETRIEVED, _TRUTH = "retrieved_documents", "retrieval_ground_truth"
_ACCEPTED = {
    _RETRIEVED: "a list of objects with document_id and relevance_score",
    _TRUTH: "a list of objects with document_id and query_relevance_label",
}


class DocumentRetrievalOptions(Options):
    """Options of DocumentRetrieval; a threshold of null gives that figure no verdict."""

    ground_truth_label_min: int = Field(default=0, ge=0, description="the label of an irrelevant document")
    ground_truth_label_max: int = Field(default=4, description="the label of a perfect document")
    xdcg_threshold: float | None = Field(default=50.0, description="what xdcg@3 has to reach")
    fidelity_threshold: float | None = Field(default=0.5, description="what fidelity has to reach")
    top1_relevance_threshold: float | None = Field(
        default=50.0, description="what the label of the first document has to reach"
    )
    top3_max_relevance_threshold: float | None = Field(
        default=50.0, description="what the best label of the first three has to reach"
    )
    total_retrieved_documents_threshold: int | None = Field(
        default=50, description="how many documents have to be retrieved"
    )
    total_ground_truth_documents_threshold: int | None = Field(
        default=50, description="how many documents have to be labelled"
    )

    @model_validator(mode="after")
    def _order_labels(self) -> Self:
        if self.ground_truth_label_min >= self.ground_truth_label_max:
            raise PydanticCustomError("labels", "ground_truth_label_min below ground_truth_label_max")
        return self


def judge_ranking(options: DocumentRetrievalOptions, fields: Fields) -> Verdict:
    """Score NDCG@3 of the documents, ordered by their relevance score.

    NDCG@3 = DCG / ideal DCG with gains 2^label - 1 and discounts log2(rank + 1); XDCG@3 = the mean of
    25 * label weighted by 0.6^(rank - 1), always over three ranks; fidelity = the sum of 2^(label + 1) - 1
    over labels above the minimum, retrieved by all. A document without a label counts as 0 and is a hole.
    All figures with threshold and verdict stand in the details, those of NDCG@3 itself in the row. Figures
    are those of azure-ai-evaluation 1.18.10, but fidelity without any relevant document is null, where it
    says NaN, and labels from 10 are weighed in order.

    Raises:
        CallError: `bad_field`: no label, a document without id, label or score, a label out of range, too
            many.
    """
    judged = _read_documents(fields, _TRUTH)
    labels = _read_labels(options, judged)
    scores, count = _read_scores(_read_documents(fields, _RETRIEVED))
    ranked = sorted(scores, key=lambda document: scores[document], reverse=True)
    got = [labels.get(document, 0) for document in ranked]
    best = sorted(labels.values(), reverse=True)
    holes = sum(document not in labels for document in ranked)
    found = any(got)
    figures: dict[str, float | None] = {
        _PRIMARY: min(1.0, _sum_gains(got) / _sum_gains(best)) if found else 0.0,
        f"xdcg@{K}": _weigh_labels(got) if found else 0.0,
        "fidelity": _compare_worth(got, best, options.ground_truth_label_min) if found else 0.0,
        "top1_relevance": got[0] if found else 0,
        "top3_max_relevance": max(got[:K]) if found else 0,
        "holes": holes,
        "holes_ratio": holes / count if count else 0.0,
        "total_retrieved_documents": count,
        "total_ground_truth_documents": len(judged),
    }
    return Verdict(score=figures[_PRIMARY], details=figures | _judge_figures(options, figures))


def _read_documents(fields: Fields, name: str) -> list[dict[str, JsonValue]]:
    documents = read_objects(read_field(fields[name], name), name, _ACCEPTED[name])
    if len(documents) > MAX_DOCUMENTS:
        raise CallError(
            BAD_FIELD, f"{name} holds {len(documents)} documents, at most {MAX_DOCUMENTS} are accepted"
        )
    return documents


def _read_id(document: dict[str, JsonValue], field: str) -> _Id | None:
    key = document.get("document_id")
    if key is None or (isinstance(key, str | int | float) and not isinstance(key, bool)):
        return key
    raise refuse_value(f"a document_id of {field}", key, "text or a number")


def _read_labels(
    options: DocumentRetrievalOptions, documents: Iterable[dict[str, JsonValue]]
) -> dict[_Id, int]:
    low, high = options.ground_truth_label_min, options.ground_truth_label_max
    labels: dict[_Id, int] = {}
    for document in documents:
        key, label = _read_id(document, _TRUTH), document.get("query_relevance_label")
        if key is None or not isinstance(label, int) or isinstance(label, bool):
            raise CallError(BAD_FIELD, f"an entry of {_TRUTH} lacks document_id or a whole label")
        if not low <= label <= high:
            raise CallError(BAD_FIELD, f"query_relevance_label {label} is not within {low}..{high}")
        labels[key] = label
    if not labels:
        raise CallError(BAD_FIELD, f"{_TRUTH} holds no document")
    return labels


def _read_scores(documents: Sequence[dict[str, JsonValue]]) -> tuple[dict[_Id, float], int]:
    """Return score by document, of equal ids the last one's, and how many there are with all repeats."""
    scores: dict[_Id, float] = {}
    for document in documents:
        key, score = _read_id(document, _RETRIEVED), document.get("relevance_score")
        if key is None or not isinstance(score, int | float) or isinstance(score, bool):
            raise CallError(
                BAD_FIELD, f"an entry of {_RETRIEVED} lacks document_id or a relevance_score in numbers"
            )
        scores[key] = score
    return scores, len(documents)


def _sum_gains(labels: Sequence[int]) -> float:
    return sum((math.pow(2, label) - 1) / math.log2(rank + 1) for rank, label in enumerate(labels[:K], 1))


def _weigh_labels(labels: Sequence[int]) -> float:
    weights = [math.pow(_DISCOUNT, place) for place in range(K)]
    return sum(_LABEL_WEIGHT * label * weight for label, weight in zip(labels, weights, strict=False)) / sum(
        weights
    )


def _compare_worth(got: Iterable[int], best: Iterable[int], low: int) -> float | None:
    retrieved, known = (
        sum(math.pow(2, label + 1) - 1 for label in labels if label > low) for labels in (got, best)
    )
    return retrieved / known if known else None


def _judge_figures(
    options: DocumentRetrievalOptions, figures: dict[str, float | None]
) -> dict[str, float | str | None]:
    """Return threshold, verdict and direction of every figure but the score itself."""
    told: dict[str, float | str | None] = {}
    for name, figure in figures.items():
        if name == _PRIMARY:
            continue
        lower = name.startswith("holes")
        threshold = 0 if lower else getattr(options, f"{name.removesuffix(f'@{K}')}_threshold")
        passed = None
        if figure is not None and threshold is not None:
            passed = figure <= threshold if lower else figure >= threshold
        told[f"{name}_threshold"] = threshold
        told[f"{name}_passed"] = passed
        told[f"{name}_result"] = None if passed is None else ("pass" if passed else "fail")
        told[f"{name}_higher_is_better"] = not lower
    return told


EVALUATOR = RowEvaluator(
    name="DocumentRetrieval",
    summary="How well retrieved documents are ranked, by known relevance labels.",
    aliases=("document_retrieval", "builtin.document_retrieval"),
    needs=("retrieved_documents", "retrieval_ground_truth"),
    json_fields=("retrieved_documents", "retrieval_ground_truth"),
    options=DocumentRetrievalOptions,
    metric=_PRIMARY,
    threshold=0.5,
    threshold_names=("threshold", "ndcg_threshold"),
    judge=judge_ranking,
)
