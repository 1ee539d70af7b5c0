"""Judges of azure-ai-evaluation beside ours of the same name, asking one scripted server; prints Markdown.

Usage: azure_judges.py PYTHON_WITH_AZURE
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.testing import ModelServer

JUDGES = {
    "Relevance": ("query", "response"),
    "Coherence": ("query", "response"),
    "Fluency": ("response",),
    "Similarity": ("query", "response", "ground_truth"),
    "Groundedness": ("query", "response", "context"),
    "IntentResolution": ("query", "response", "tool_definitions"),
    "TaskAdherence": ("query", "response", "tool_definitions"),
}
TOOLS: Any = [
    {"name": "tool-mark", "description": "Finds it.", "parameters": {"type": "object", "properties": {}}}
]
FIELDS: dict[str, Any] = {
    "query": "query-mark: what is the capital of Spain?",
    "ground_truth": "truth-mark: Madrid is.",
    "context": "context-mark: Madrid is the capital of Spain.",
    "tool_definitions": TOOLS,
}
RENAMED = {"ground_truth": "expected_response"}  # theirs to ours
MARKS = {"query": "query-mark", "response": "case-", "ground_truth": "truth-mark", "context": "context-mark"}
MARKS["tool_definitions"] = "tool-mark"
REASON = '"reason": "It says so."'
VALID = "valid"
OF_BOTH = frozenset({"TaskAdherence"})  # those whose grades are 0 and 1
REPLIES = {
    VALID: f'{{{REASON}, "score": GRADE}}',
    "valid, in a fence": f'```json\n{{{REASON}, "score": GRADE}}\n```',
    "valid, status completed": f'{{{REASON}, "score": GRADE, "status": "completed"}}',
    "grade as text": f'{{{REASON}, "score": "GRADE"}}',
    "a draft, then the verdict": f'{{"score": 0}} is too low.\n{{{REASON}, "score": GRADE}}',
    "status skipped": f'{{{REASON}, "score": null, "status": "skipped"}}',
    "score missing": f"{{{REASON}}}",
    "score null": f'{{{REASON}, "score": null}}',
    "9 of 5": f'{{{REASON}, "score": 9}}',
    "-1": f'{{{REASON}, "score": -1}}',
    "true": f'{{{REASON}, "score": true}}',
    '"abc"': f'{{{REASON}, "score": "abc"}}',
    "NaN": f'{{{REASON}, "score": NaN}}',
    "GRADE as plain text": "GRADE",
    "10 as plain text": "10",
    "truncated JSON": f'{{{REASON}, "score": GRADE',
    "two verdicts": f'{{{REASON}, "score": GRADE}}\n{{{REASON}, "score": 0}}',
    "prose with digits": "There are 5 reasons why this is a 2.",
    "not JSON": "I would say it is quite good.",
    "an empty object": "{}",
    "empty": "",
}


def list_calls() -> Iterator[tuple[str, str, int]]:
    """Yield judge, name of the reply and its number."""
    for judge in JUDGES:
        for number, reply in enumerate(REPLIES):
            yield judge, reply, number


def build_fields(judge: str, number: int) -> dict[str, Any]:
    """Return what a judge is given; the answer names the reply that the server is to give."""
    given = {name: FIELDS[name] for name in JUDGES[judge] if name != "response"}
    return given | {"response": f"case-{judge}-{number}- Madrid."}


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Return the step of a request."""
    found = re.search(r"case-(\w+)-(\d+)-", json.dumps(body))
    assert found is not None
    grade = "1" if found.group(1) in OF_BOTH else "4"
    return {"reply": list(REPLIES.values())[int(found.group(2))].replace("GRADE", grade)}


def run_theirs(url: str) -> None:
    """Ask every judge of azure-ai-evaluation and print what it returns, a JSON line each."""
    azure: Any = import_module("azure.ai.evaluation")
    model = azure.OpenAIModelConfiguration(type="openai", api_key="none", model="m", base_url=url)
    for judge, _, number in list_calls():
        try:
            found = getattr(azure, f"{judge}Evaluator")(model)(**build_fields(judge, number))
            key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", judge).lower()
            told = {"score": found[key], "passed": found[f"{key}_passed"], "result": found[f"{key}_result"]}
        except Exception as error:  # noqa: BLE001 - whatever it raises is the finding
            said = str(error).strip().splitlines() or [""]
            told = {"error": f"{type(error).__name__}: {said[0]}"}
        print("RESULT", json.dumps(told), flush=True)


async def run_ours(url: str) -> list[dict[str, Any]]:
    """Ask every judge of ours and return the rows."""
    import polars as pl

    from assay.chat.client import open_chat
    from assay.chat.traffic import Traffic
    from assay.config import Endpoint, RunConfig
    from evaluators.catalog import resolve_evaluation
    from evaluators.panel import Judging
    from evaluators.runner import run_evaluation

    rows: list[dict[str, Any]] = []
    async with open_chat(Endpoint(model="m", base_url=url), Traffic(RunConfig(datasets=()))) as chat:
        for judge, _, number in list_calls():
            given = {RENAMED.get(name, name): value for name, value in build_fields(judge, number).items()}
            texts = {name: v if isinstance(v, str) else json.dumps(v) for name, v in given.items()}
            judging = Judging((chat,), 1, lambda: None)
            found = await run_evaluation(resolve_evaluation(judge, {}), pl.DataFrame([texts]), judging)
            rows.append(found.row(0, named=True))
    return rows


def tell_theirs(told: dict[str, Any]) -> str:
    """Write one of their results."""
    if "error" in told:
        return f"`{told['error'][:60]}`"
    return f"{told['score']}, {told['result']}"


def tell_ours(row: dict[str, Any]) -> str:
    """Write one of our rows."""
    if row["error_code"] is not None:
        return f"error `{row['error_code']}`"
    return f"{row['score']}, {'pass' if row['passed'] else 'fail'}"


def group_calls(server: ModelServer) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Return the bodies that reached the server, by judge and number of the reply."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for request in server.requests:
        match = re.search(r"case-(\w+)-(\d+)-", json.dumps(request["body"]))
        assert match is not None
        found.setdefault((match.group(1), int(match.group(2))), []).append(request["body"])
    return found


def describe_request(body: dict[str, Any]) -> str:
    """Say which fields a request shows, and how it asks."""
    text = json.dumps(body["messages"])
    shown = ", ".join(name for name, mark in MARKS.items() if mark in text)
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    form = body.get("response_format", {}).get("type")
    return f"{shown}; {form}, temperature {body.get('temperature')}, {limit} tokens"


def print_requests(theirs: dict[Any, list[dict[str, Any]]], ours: dict[Any, list[dict[str, Any]]]) -> None:
    """Print what reached the server for the valid reply."""
    print("| judge | theirs asks | ours asks |\n|---|---|---|")
    for judge in JUDGES:
        print(
            f"| {judge} | {describe_request(theirs[judge, 0][0])} | {describe_request(ours[judge, 0][0])} |"
        )


def print_results(told: dict[str, dict[str, list[str]]], counts: dict[str, set[str]]) -> None:
    """Print what came of each reply, judges that agree in one cell."""
    print("\n| reply of the judge | theirs | ours | calls, theirs and ours |\n|---|---|---|---|")
    for reply in REPLIES:
        theirs, ours = (join_alike(told[reply][side]) for side in ("theirs", "ours"))
        print(f"| {reply} | {theirs} | {ours} | {', '.join(sorted(counts[reply]))} |")


def join_alike(told: list[str]) -> str:
    """Write the outcomes of all judges, each once with the judges it is of."""
    by_outcome: dict[str, list[str]] = {}
    for judge, outcome in zip(JUDGES, told, strict=True):
        by_outcome.setdefault(outcome, []).append(judge)
    ranked = sorted(by_outcome.items(), key=lambda pair: -len(pair[1]))
    return "<br>".join(
        outcome if len(judges) == max(map(len, by_outcome.values())) else f"{outcome} ({', '.join(judges)})"
        for outcome, judges in ranked
    )


def main(python: str) -> None:
    """Run both against servers alike and print the tables."""
    from assay.testing import ModelServer

    os.environ["OPENAI_API_KEY"] = "none"
    with ModelServer(after=answer) as one, ModelServer(after=answer) as other:
        command = [python, __file__, "theirs", one.base_url]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        theirs = [json.loads(line.removeprefix("RESULT ")) for line in lines]
        ours = asyncio.run(run_ours(other.base_url))
        calls = group_calls(one), group_calls(other)
    told = {reply: {"theirs": list[str](), "ours": list[str]()} for reply in REPLIES}
    counts: dict[str, set[str]] = {reply: set() for reply in REPLIES}
    for (judge, reply, number), their, our in zip(list_calls(), theirs, ours, strict=True):
        told[reply]["theirs"].append(tell_theirs(their))
        told[reply]["ours"].append(tell_ours(our))
        counts[reply].add("/".join(str(len(each.get((judge, number), []))) for each in calls))
    print_requests(*calls)
    print_results(told, counts)


if __name__ == "__main__":
    if sys.argv[1:2] == ["theirs"]:
        run_theirs(sys.argv[2])
    else:
        main(sys.argv[1])
