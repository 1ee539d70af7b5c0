from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.errors import ConfigError
from assay.settings import make_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.config import RunConfig
    from assay.testing import ModelServer

PROJECT = """
[judges.strict]
model = "gpt-4o"
base_url = "http://127.0.0.1:9/v1"
api_key_env = "STRICT_KEY"

[judges.mild]
model = "small"
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunConfig]:
    monkeypatch.chdir(tmp_path)
    Path("assay.toml").write_text(PROJECT, encoding="utf-8")

    def make(**settings: Any) -> RunConfig:
        return make_config(["x.jsonl"], settings)  # pyright: ignore[reportArgumentType] - some are wrong on purpose

    return make


def test_several_judges_are_a_jury_each_with_a_server_of_its_own(config: Callable[..., RunConfig]) -> None:
    made = config(judge=["strict", "mild", "azure:d"], judge_vote="mean", judge_repeats=3)
    found = [(each.model, each.provider, each.base_url, each.api_key_env) for each in made.judges]
    assert found == [
        ("gpt-4o", "openai", "http://127.0.0.1:9/v1", "STRICT_KEY"),
        ("small", "openai", None, None),
        ("d", "azure", None, None),
    ]
    assert (made.panel.vote, made.panel.repeats) == ("mean", 3)


def test_one_judge_is_no_jury_however_it_is_written(config: Callable[..., RunConfig]) -> None:
    for judge in ("gpt-4o", ["gpt-4o"]):
        made = config(judge=judge, base_url="http://127.0.0.1:8/v1")
        assert [each.model for each in made.judges] == ["gpt-4o"]
        assert made.judges[0].base_url == "http://127.0.0.1:8/v1"


def test_options_of_the_judge_hold_for_every_judge_of_a_jury(config: Callable[..., RunConfig]) -> None:
    made = config(judge=["a", "b"], judge_base_url="http://127.0.0.1:7/v1")
    assert {each.base_url for each in made.judges} == {"http://127.0.0.1:7/v1"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"judge_repeats": 3}, "without a judge there is no use for judge_repeats; name a --judge"),
        ({"canaries": "built-in"}, "no use for canaries"),
        ({"judge": "a", "judge_vote": "mean"}, "one judge needs no vote; name several with --judge"),
        ({"judge": "a", "judge_repeats": 0}, "judge_repeats: Input should be greater than or equal to 1"),
        ({"judge": ["a", "b"], "judge_vote": "loudest"}, "judge_vote: Input should be 'majority' or 'mean'"),
        ({"embedding_base_url": "http://127.0.0.1:1"}, "without an embedding model"),
        ({"embedding_model": "m", "embedding_base_url": "ftp://x"}, "embedding_base_url: must start with"),
    ],
)
def test_what_cannot_work_is_refused_by_name(
    config: Callable[..., RunConfig], settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        config(**settings)


def test_an_embedding_model_is_at_the_server_of_the_target(config: Callable[..., RunConfig]) -> None:
    made = config(embedding_model="e", model="m", base_url="http://127.0.0.1:8/v1", api_key_env="K")
    assert made.embeddings is not None
    assert (made.embeddings.base_url, made.embeddings.api_key_env) == ("http://127.0.0.1:8/v1", "K")
    there = {"embedding_base_url": "http://127.0.0.1:6/v1", "base_url": "http://127.0.0.1:8/v1"}
    elsewhere = config(embedding_model="e", model="m", api_key_env="K", **there)
    assert elsewhere.embeddings is not None
    assert elsewhere.embeddings.api_key_env is None  # a server elsewhere never gets the target's key


@pytest.mark.usefixtures("api_key")
def test_the_command_line_takes_a_jury_a_prompt_file_and_a_condition(
    call: Any, tmp_path: Path, loopback: ModelServer
) -> None:
    loopback.script([], after={"reply": '{"reason": "fine", "score": 4}'})
    data, prompt = tmp_path / "rows.jsonl", tmp_path / "p.md"
    data.write_text('{"query": "q", "response": "x", "ground_truth": "y"}\n', encoding="utf-8")
    prompt.write_text("---\nname: Mine\nscale: 1..5\nfields: response\n---\nGrade it.\n", encoding="utf-8")
    line = ["run", data, "--judge", "a", "--judge", "b", "--judge-repeats", "2", "--judge-prompt", prompt]
    line += ["--judge-base-url", loopback.base_url, "--evaluators", "ExactMatch", "--only-if"]
    code, out, err = call(*line, "Mine=ExactMatch:fail")
    assert code == 0, err
    assert "4 model calls" in err
    assert re.search(r"Mine +1 +0 +0 +0 +4 +1/1", out)
    assert len(loopback.requests) == 4
    assert call(*line, "Mine=ExactMatch:pass")[1].count("settled: skipped") == 1
    assert len(loopback.requests) == 4
