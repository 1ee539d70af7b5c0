from __future__ import annotations

import asyncio
import json
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from evaluators import bleu_score, f1_score, gleu_score, partial_match, rouge_score
from evaluators.catalog import Catalog
from evaluators.runner import run_evaluation
from evaluators.text.compiling import SMALL
from evaluators.text.counting import count_shared
from evaluators.text.plain import list_tokens
from evaluators.text.scores import score_bleu_sdk
from evaluators.text.tokens import hash_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NLTK = "nltk.translate"  # without types, as the rouge_score package
GOLDEN = Path(__file__).parents[1] / "golden" / "golden-foundry.jsonl"
ALL = [module.EVALUATOR for module in (f1_score, partial_match, rouge_score, bleu_score, gleu_score)]
CATALOG = Catalog(ALL)
METRICS = {"f1_score": 111, "bleu": 111, "gleu": 111, "rouge": 561}
ROUGE = ["rouge1", "rouge2", "rouge3", "rouge4", "rouge5", "rougeL"]
KINDS: list[tuple[str, dict[str, str]]] = [
    *[(name, {}) for name in ("F1Score", "BleuScore", "GleuScore")],
    *[("RougeScore", {"rouge_type": each}) for each in ROUGE],
]
WORDS = st.lists(
    st.sampled_from(["the", "cat", "Sat", "on", "mat", "No", "don't", "\u00fc", "x\u00b2"]), max_size=9
)
TEXTS = WORDS.map(" ".join) | st.text(max_size=20)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=12)
CANDIDATE = "\u3053\u308c \u306f \u30c6\u30b9\u30c8 \u5019\u88dc \u306e \u5fdc\u7b54"
REFERENCE = "\u3053\u308c \u306f \u30c6\u30b9\u30c8 \u306e \u6b63\u89e3"
THAI = "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35"
CAPITAL = "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3059"


def run(name: str, pairs: Sequence[tuple[str | None, str | None]], **options: Any) -> pl.DataFrame:
    schema = {"response": pl.String, "expected_response": pl.String}
    frame = pl.DataFrame(pairs, schema=schema, orient="row")
    return asyncio.run(run_evaluation(CATALOG.resolve(name, options), frame, None))


def fill(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Make so many rows that the compiled loops run."""
    return [*pairs, *[("x", "y")] * SMALL]


def read_golden(metric: str) -> list[dict[str, Any]]:
    names = {metric, f"{metric}_score"}
    lines = map(json.loads, GOLDEN.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["evaluator"].removeprefix("builtin.") in names]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("times", [1, SMALL])
def test_the_vectors_of_the_sdk_are_met(metric: str, times: int) -> None:
    lines = read_golden(metric)
    assert len(lines) == METRICS[metric]
    for options in {json.dumps(line["options"]): line["options"] for line in lines}.values():
        group = [line for line in lines if line["options"] == options]
        pairs = [(line["response"], line["ground_truth"]) for line in group]
        rows = run(group[0]["evaluator"], (pairs * times)[: max(len(pairs), times)], **options)[: len(pairs)]
        assert rows["score"].to_list() == pytest.approx([g["outputs"][metric] for g in group], abs=1e-12)
        assert rows["passed"].to_list() == [g["outputs"][f"{metric}_passed"] for g in group]
        assert rows["threshold"].to_list() == [g["outputs"][f"{metric}_threshold"] for g in group]


@pytest.mark.parametrize("rouge_type", ROUGE)
def test_the_parts_of_rouge_and_their_verdicts_are_those_of_the_sdk(rouge_type: str) -> None:
    lines = [line for line in read_golden("rouge") if line["options"]["rouge_type"] == rouge_type]
    for options in {json.dumps(line["options"]): line["options"] for line in lines}.values():
        group = [line for line in lines if line["options"] == options]
        rows = run("rouge_score", [(line["response"], line["ground_truth"]) for line in group], **options)
        details = [json.loads(each) for each in rows["details_json"]]
        for part in ("precision", "recall", "f1_score", "precision_passed", "recall_passed"):
            wanted = [line["outputs"]["rouge_properties"][f"rouge_{part}"] for line in group]
            assert [each[part] for each in details] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("name", "options"), KINDS)
def test_compat_names_what_it_equals(name: str, options: dict[str, Any]) -> None:
    details = [
        json.loads(run(name, [("a b", "a b")], mode=mode, **options)["details_json"].item())
        for mode in ("compat", "unicode")
    ]
    assert [each["mode"] for each in details] == ["compat", "unicode"]
    if name in {"BleuScore", "GleuScore"}:
        assert all(each["tokenizer"] and each["smoothing"] and each["equals"] for each in details)
        assert [each["case_sensitive"] for each in details] == [True, False]


@pytest.mark.parametrize(
    ("response", "expected", "compat", "unicode"),
    [
        ("left right", "left right", 0.221389, 1.0),
        ("Paris", "Paris", 1.0, 1.0),
        ("This is cat", "This is a cat", 0.167935, 0.45138644),
        ("yes", "no", 0.0, 0.0),
        ("", "x", 0.0, 0.0),
        ("the cat sat on the mat", "the cat sat on the mat", 1.0, 1.0),
    ],
)
def test_bleu_of_short_texts(response: str, expected: str, compat: float, unicode: float) -> None:
    for mode, wanted in (("compat", compat), ("unicode", unicode)):
        score = run("BleuScore", [(response, expected)], mode=mode)["score"].item()
        assert score == pytest.approx(wanted, abs=1e-6)
        assert 0 <= score <= 1


@pytest.mark.parametrize("name", ["F1Score", "RougeScore"])
@pytest.mark.parametrize(
    ("response", "expected", "wanted"),
    [
        (THAI, THAI, 1.0),
        (CAPITAL, CAPITAL, 1.0),
        (CANDIDATE, REFERENCE, 0.7),  # 7 shared of 11 and 9 characters; by words between spaces 0.7273
        ("M\u00fcller", "M\u00f6ller", 0.0),
        ("Gr\u00fc\u00dfe", "Gr\u00f6\u00dfe", 0.0),
        ("caf\u00e9", "cafe\u0301", 1.0),
        ("\uff14\uff12", "42", 0.0),
        ("don\u2019t", "don't", 0.0),
        ("a\u00a0b", "a b", 1.0),
        ("STRASSE", "stra\u00dfe", 1.0),
        ("\u0130", "i", 0.0),
    ],
)
def test_every_script_has_words_in_few_rows_and_many(
    name: str, response: str, expected: str, wanted: float
) -> None:
    for pairs in ([(response, expected)], fill([(response, expected)])):
        assert run(name, pairs, mode="unicode")["score"][0] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("name", "options"), KINDS)
@given(st.lists(TEXTS.filter(lambda text: text.split() != []), min_size=1, max_size=12))
def test_every_text_matches_itself(name: str, options: dict[str, Any], texts: list[str]) -> None:
    pairs = [(text, text) for text in texts]
    for rows in (pairs, fill(pairs)):
        assert set(run(name, rows, mode="unicode", **options)["score"][: len(texts)].to_list()) == {1.0}


@pytest.mark.parametrize(("name", "options"), KINDS)
@pytest.mark.parametrize("mode", ["compat", "unicode"])
@given(pairs=PAIRS)
def test_scores_lie_within_0_and_1_and_do_not_depend_on_the_other_rows(
    name: str, options: dict[str, Any], mode: str, pairs: list[tuple[str, str]]
) -> None:
    few = run(name, pairs, mode=mode, **options)
    many = run(name, fill(pairs), mode=mode, **options)
    back = run(name, pairs[::-1], mode=mode, **options)
    assert few.drop("row").equals(many[: len(pairs)].drop("row"))
    assert back.reverse().drop("row").equals(few.drop("row"))
    assert few["score"].drop_nulls().is_between(0, 1).all()


@pytest.mark.parametrize(("name", "options"), [kind for kind in KINDS if kind[0] != "BleuScore"])
@pytest.mark.parametrize("mode", ["compat", "unicode"])
@given(pairs=PAIRS)
def test_sides_can_be_swapped(
    name: str, options: dict[str, Any], mode: str, pairs: list[tuple[str, str]]
) -> None:
    closed = [(f"{a}.", f"{b}.") for a, b in pairs]  # nothing is blank
    there = run(name, closed, mode=mode, **options)["score"]
    assert there.equals(run(name, [(b, a) for a, b in closed], mode=mode, **options)["score"])


@pytest.mark.parametrize("rouge_type", ROUGE)
@given(pairs=PAIRS)
def test_rouge_is_that_of_the_rouge_score_package(rouge_type: str, pairs: list[tuple[str, str]]) -> None:
    scorer: Any = import_module("rouge_score.rouge_scorer").RougeScorer([rouge_type])
    wanted: list[float] = [
        scorer.score(target, prediction)[rouge_type].fmeasure for prediction, target in pairs
    ]
    for rows in (pairs, fill(pairs)):
        scores = run("RougeScore", rows, rouge_type=rouge_type)["score"][: len(pairs)]
        assert scores.to_list() == pytest.approx(wanted, abs=1e-12)


@given(pairs=PAIRS)
def test_f1_is_that_of_counting_by_hand(pairs: list[tuple[str, str]]) -> None:
    def score(left: list[str], right: list[str]) -> float:
        shared = (Counter(left) & Counter(right)).total()
        precision, recall = shared / max(len(left), 1), shared / max(len(right), 1)
        return 2 * precision * recall / (precision + recall) if shared else 0.0

    sides = [list_tokens(pl.Series(side), "f1", case_sensitive=False) for side in zip(*pairs, strict=True)]
    wanted = [score(left, right) for left, right in zip(*sides, strict=True)]
    for rows in (pairs, fill(pairs)):
        assert run("F1Score", rows)["score"][: len(pairs)].to_list() == pytest.approx(wanted, abs=1e-12)


@given(pairs=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=12))
def test_bleu_and_gleu_are_those_of_the_libraries(pairs: list[tuple[list[str], list[str]]]) -> None:
    bleu = BLEU(tokenize="none", effective_order=True, lowercase=False)
    rows = [(" ".join(left), " ".join(right) + " .") for left, right in pairs]
    words = [
        list_tokens(pl.Series(side), "unicode", case_sensitive=False) for side in zip(*rows, strict=True)
    ]
    split = list(zip(*words, strict=True))
    sacre = [bleu.sentence_score(" ".join(a), [" ".join(b)]).score / 100 for a, b in split]
    sentence_gleu: Callable[..., float] = import_module(f"{NLTK}.gleu_score").sentence_gleu
    gleu = [sentence_gleu([b], a) for a, b in split]
    equal = [not a and not b for a, b in split]
    for name, wanted in (("BleuScore", sacre), ("GleuScore", gleu)):
        for texts in (rows, fill(rows)):
            scores = run(name, texts, mode="unicode")["score"][: len(rows)].to_list()
            known = [s for s, skipped in zip(scores, equal, strict=True) if not skipped]
            right = [w for w, skipped in zip(wanted, equal, strict=True) if not skipped]
            assert known == pytest.approx(right, abs=1e-12)


@given(pairs=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=12))
def test_the_formula_of_compat_bleu_is_that_of_nltk(pairs: list[tuple[list[str], list[str]]]) -> None:
    left, right = (hash_tokens(side) for side in zip(*pairs, strict=True))
    scores = score_bleu_sdk(count_shared(left, right, 1, 4), left.counts, right.counts)
    nltk: Any = import_module(f"{NLTK}.bleu_score")
    smooth = nltk.SmoothingFunction().method4
    wanted = [nltk.sentence_bleu([b], a, smoothing_function=smooth) if a else 0.0 for a, b in pairs]
    assert scores.tolist() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("mode", "status", "value"), [("unicode", "skipped", None), ("compat", "ok", 0.0)])
@pytest.mark.parametrize(("name", "options"), KINDS)
def test_a_blank_reference_is_text_only_in_compat_mode(
    name: str, options: dict[str, Any], mode: str, status: str, value: float | None
) -> None:
    result = run(name, [("x", " ")], mode=mode, **options)
    assert (result["status"].item(), result["score"].item()) == (status, value)


@pytest.mark.parametrize(("name", "options"), KINDS)
def test_nulls_are_skipped(name: str, options: dict[str, Any]) -> None:
    result = run(name, [("x", None), (None, "x"), ("x", "x")], **options)
    assert result["status"].to_list() == ["skipped", "skipped", "ok"]


def test_case_counts_when_asked() -> None:
    for name, options in KINDS:
        quiet, loud = (" ".join(["word"] * 6), " ".join(["Word"] * 6))
        assert run(name, [(quiet, loud)], mode="unicode", **options)["score"].item() == 1.0
        strict = run(name, [(quiet, loud)], mode="unicode", case_sensitive=True, **options)
        assert strict["score"].item() == 0.0
    assert run("BleuScore", [("yes", "YES")])["score"].item() == 0.0
    assert run("F1Score", [("yes", "YES")])["score"].item() == 1.0
