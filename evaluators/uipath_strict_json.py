"""UiPathStrictJsonSimilarity: expected keys compared strictly; a judge finds, and the sum is done here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from assay.contracts.json_text import dump_json
from assay.errors import NotApplicableError
from evaluators.contract import JudgeEvaluator, Verdict
from evaluators.judging import ask_judge
from evaluators.output_sides import read_json
from evaluators.prompt_files import read_prompt
from evaluators.reply_forms import UnusableError, object_schema, read_text
from evaluators.reply_lists import list_schema, read_numbered
from evaluators.uipath_prompts import SHARE
from evaluators.uipath_semantic import OutputJudgeOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.chat import Chat
    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields
    from evaluators.reply_forms import Found, Schema

PROMPT = read_prompt("uipath_strict_json")
FINDINGS: Mapping[str, float] = {"match": 0.0, "similar": 0.5, "wrong": 1.0, "missing": 1.0}
"""What is found of an expected key, and which part of its share of the score that costs."""
SHOWN = ("pairs", *PROMPT.head.shown)
EXTRA = 0.1  # part of the share of one key that a key beyond the expected ones costs
WHOLE = "(all)"  # stands for the key where the expected output is no object


@dataclass(frozen=True, slots=True)
class FindingsForm:
    """A finding for each of the numbered keys.

    Attributes:
        names: The keys, in order.
    """

    names: Sequence[str]
    keys: tuple[str, ...] = ("findings",)

    @property
    def schema(self) -> Schema:
        """The object with its list."""
        choice: Schema = {"type": "string", "enum": ["match", "similar", "wrong"]}
        return object_schema({"findings": list_schema({"reason": {"type": "string"}, "finding": choice})})

    @property
    def example(self) -> str:
        """The object, one entry for every key."""
        entry = '{"number": <of the key>, "reason": "<one sentence>", "finding": "<match, similar or wrong>"}'
        return f'{{"findings": [{entry}, ...]}}'

    def read(self, found: Found) -> Verdict:
        """Read a finding for every key; they stand in the details.

        Raises:
            UnusableError: A key has none, or more than one, or another than these.
        """
        findings: dict[str, object] = {}
        for number, entry in read_numbered(found, "findings", len(self.names)).items():
            finding = (read_text(entry, "finding") or "").strip().casefold()
            if finding not in {"match", "similar", "wrong"}:
                raise UnusableError("a `finding` is none of match, similar or wrong")
            reason = read_text(entry, "reason")
            findings[self.names[number - 1]] = {"finding": finding, "reason": reason}
        return Verdict(None, details={"keys": findings})


async def ask_strict_json(options: OutputJudgeOptions, fields: Fields, chat: Chat) -> Verdict:
    """Score 1 less what is amiss: of N keys a wrong or missing one costs 1/N, a similar one half of that.

    A key beyond the expected ones costs a tenth of it, and nothing falls below 0. The judge is asked only
    about keys that are there and not equal; an output that is no object where one is expected has none.

    Raises:
        NotApplicableError: No key is expected.
        CallError: As `ask_judge`.
    """
    sides = {name: read_json(text) for name, text in options.read_sides(fields).items()}
    got, wanted = _as_objects(sides["response"], sides["expected_response"])
    if not wanted:
        raise NotApplicableError("no keys are expected")
    keys = {key: _look(key, got, value) for key, value in wanted.items()}
    unclear = [key for key, finding in keys.items() if finding is None]
    verdict = Verdict(None)
    if unclear:
        pairs = [
            {"number": number, "key": key, "expected": wanted[key], "actual": got[key]}
            for number, key in enumerate(unclear, start=1)
        ]
        rubric = options.write_rubric(PROMPT, FindingsForm(unclear), SHOWN)
        shown = {"pairs": dump_json(pairs), **{name: fields[name] for name in PROMPT.head.shown}}
        verdict = await ask_judge(rubric, shown, options.sample(chat))
    return _sum_up(verdict, keys, [key for key in got if key not in wanted])


def _as_objects(got: JsonValue, wanted: JsonValue) -> tuple[Mapping[str, JsonValue], Mapping[str, JsonValue]]:
    if isinstance(wanted, dict):
        return (got if isinstance(got, dict) else {}), wanted
    return {WHOLE: got}, {WHOLE: wanted}


def _look(key: str, got: Mapping[str, JsonValue], wanted: JsonValue) -> dict[str, object] | None:
    """Say what needs no judge: that a key is not there, or has the very value."""
    if key not in got:
        return {"finding": "missing", "reason": None}
    return {"finding": "match", "reason": None} if dump_json(got[key]) == dump_json(wanted) else None


def _sum_up(verdict: Verdict, keys: Mapping[str, dict[str, object] | None], extra: Sequence[str]) -> Verdict:
    told = dict(verdict.details or {})
    judged = cast("Mapping[str, dict[str, object]]", told.pop("keys", {}))
    found = {key: finding or judged[key] for key, finding in keys.items()}
    costs = [FINDINGS[str(finding["finding"])] for finding in found.values()]
    score = max(0.0, 1.0 - (sum(costs) + EXTRA * len(extra)) / len(costs))
    amiss = [f"{key}: {each['finding']}" for key, each in found.items() if each["finding"] != "match"]
    amiss += [f"{key}: not expected" for key in extra]
    reason = "; ".join(amiss) or "every expected key has the expected value"
    return replace(
        verdict, score=score, reason=reason, details={**told, "keys": found, "extra_keys": [*extra]}
    )


EVALUATOR = JudgeEvaluator(
    name=PROMPT.head.name,
    summary=PROMPT.head.summary,
    aliases=PROMPT.head.aliases,
    needs=PROMPT.head.shown,
    options=OutputJudgeOptions,
    scale=SHARE,
    threshold=0.5,
    ask=ask_strict_json,
    rubrics=(OutputJudgeOptions().write_rubric(PROMPT, FindingsForm(()), SHOWN),),
)
