from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.cli.app import build_app
from assay.cli.options import Answers, Items, Running, Scoring, collect_settings
from assay.cli.parsing import parse_params
from assay.errors import ConfigError
from assay.settings import Settings, make_config, read_seconds

if TYPE_CHECKING:
    from pathlib import Path

    from assay.config import Endpoint, RunConfig

PASTED = ["sk-proj-0123456789abcdef", "0123456789abcdef0123456789abcdef", "gsk_AbC0123456789defghij"]
LINE = """run d.jsonl --target openai --model m --base-url http://h/v1 --api-version v --api-key-env K_A
--stream --responses-api --system S --temperature 0 --top-p 0.5 --max-output-tokens 5 --param a=1 --param b=x
--trials 3 --judge j --judge-base-url http://j/v1 --judge-api-version w --judge-api-key-env K_B
--concurrency 4 --timeout 2m --rpm 60 --tpm 1000 --max-wait 5 --deadline 90m --max-cost 1.5
--max-tokens-total 99 --order-seed 7 --reuse 90d --resume R --max-errors 5% --label a=b --batch-size 3
--name n --limit 2 --option E.o=1"""


def parse(line: str) -> Settings:
    _, bound, _ = build_app().parse_args(line.split())
    groups = {"answers": Answers(), "scoring": Scoring(), "items": Items(), "running": Running()}
    found: Any = groups | {name: value for name, value in bound.arguments.items() if name in groups}
    return collect_settings(**found)


def make(**settings: Any) -> RunConfig:
    return make_config(["d.jsonl"], Settings(**settings))


def read_judge(**settings: Any) -> Endpoint:
    judge = make(judge="j", **settings).judge
    assert judge is not None
    return judge


def test_an_option_that_is_not_given_is_no_setting() -> None:
    assert parse("run d.jsonl") == {"options": {}, "mapping": {}}


def test_every_option_is_a_setting_and_reaches_the_configuration() -> None:
    settings = parse(LINE)
    assert set(settings) <= set(Settings.__annotations__)
    config = make_config(["d.jsonl"], settings)
    endpoint, drawing, limits = config.target.endpoint, config.target.sampling, config.limits
    assert endpoint is not None
    assert (endpoint.api, endpoint.stream, endpoint.api_key_env) == ("responses", True, "K_A")
    assert (drawing.temperature, drawing.top_p, drawing.max_output_tokens) == (0, 0.5, 5)
    assert drawing.params == {"a": 1, "b": "x"}
    assert config.judge is not None
    assert config.judge.model_dump(include={"base_url", "api_version", "api_key_env"}) == {
        "base_url": "http://j/v1",
        "api_version": "w",
        "api_key_env": "K_B",
    }
    assert (config.trials, config.concurrency, config.timeout_s, config.reuse) == (3, 4, 120.0, "90d")
    assert (limits.rpm, limits.tpm, limits.max_wait_s, limits.deadline_s) == (60, 1000, 5, 5400)
    assert (limits.max_cost, limits.max_tokens, limits.order_seed) == (1.5, 99, 7)
    assert (config.max_errors, config.labels, config.batch_size) == ("5%", ("a=b",), 3)


def test_a_flag_can_be_taken_back_and_texts_that_stop_repeat() -> None:
    settings = parse("run d.jsonl --model m --no-stream --stop A --stop=-- --seed -3")
    assert settings.get("stream") is False
    assert (settings.get("stop"), settings.get("seed")) == (["A", "--"], -3)
    assert make(model="m", stop="END").target.sampling.stop == ("END",)


def test_a_parameter_is_json_or_else_text() -> None:
    texts = ("a=1", 'b={"c":[null]}', "d=low", "e=", "f=NaN", "g=x=y")
    assert parse_params(texts) == {"a": 1, "b": {"c": [None]}, "d": "low", "e": "", "f": "NaN", "g": "x=y"}
    with pytest.raises(ConfigError, match=r"--param 'novalue': write NAME=JSON"):
        parse_params(("novalue",))


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("90", 90),
        ("1.5", 1.5),
        ("500ms", 0.5),
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("1h30m", 5400),
        (3, 3),
    ],
)
def test_a_time_is_seconds_or_has_units(written: str | float, seconds: float) -> None:
    assert read_seconds("deadline", written) == seconds


@pytest.mark.parametrize("written", ["", "soon", "-5", "nan", "1e9", "5 minutes", "m"])
def test_what_is_no_time_is_refused_by_name(written: str) -> None:
    with pytest.raises(ConfigError, match=r"deadline: .* is no time; write seconds"):
        make(model="m", deadline_s=written)


def test_a_place_is_kept_as_written_with_the_hash_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "s.toml"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    found = [make(target=each).target for each in ("python:a.py:f", "http:s.toml", "cmd:prog -x a:b")]
    hashes = [hashlib.sha256(name.encode()).hexdigest() for name in ("a.py", "s.toml")]
    assert [(each.kind, each.place, each.place_sha256) for each in found] == [
        ("python", "a.py:f", hashes[0]),
        ("http", "s.toml", hashes[1]),
        ("cmd", "prog -x a:b", None),
    ]


def test_a_system_message_comes_from_a_file_or_begins_with_two_signs(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes("\ufeffSei kurz.\n".encode())
    assert make(model="m", system=f"@{path}").target.system == "Sei kurz.\n"
    assert make(model="m", system="@@all: hello").target.system == "@all: hello"
    with pytest.raises(ConfigError, match=r"--system: .*none\.txt cannot be read: No such file"):
        make(model="m", system=f"@{path.with_name('none.txt')}")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "python:"}, r"--target python:: write python:FILE\.py:FUNCTION"),
        ({"target": "python:a.py"}, r"write python:FILE\.py:FUNCTION"),
        ({"target": "cmd: "}, r"write cmd:PROGRAM ARGUMENTS"),
        ({"target": "http"}, r"write http:FILE\.toml"),
        ({"target": "python:none.py:f"}, r"none\.py cannot be read: No such file"),
        ({"target": "none.py:f"}, r"write python:FILE\.py:FUNCTION, such as python:none\.py:f"),
        ({"target": "azure:d"}, r"write --target azure --model d"),
        ({"target": "azur"}, r"unknown target 'azur'; did you mean azure"),
        ({"target": "azure"}, r"--target azure needs --model"),
        ({"target": "cmd:x", "model": "m"}, r"--target cmd:… has no use for model"),
        ({"target": "cmd:x", "temperature": 0.0}, r"no use for temperature"),
        ({"target": "cmd:x", "api_key_env": "K"}, r"no use for api_key_env"),
        ({"top_p": 0.5, "stop": ["x"]}, r"stored answers use no top_p, stop"),
        ({"params": {"a": 1}, "system": "s"}, r"stored answers use no params, system"),
        ({"base_url": "http://h", "judge": "j", "judge_base_url": "http://j"}, r"use no base_url"),
        ({"judge_api_key_env": "K"}, r"no use for judge_api_key_env; name a --judge"),
        ({"model": "m", "responses_api": True, "seed": 1}, r"seed: the responses API has none"),
        ({"model": "m", "responses_api": True, "stop": ["x"]}, r"stop: the responses API has none"),
        ({"model": "m", "params": {"temperature": 1}}, r"'temperature': has an option of its own: --temp"),
        ({"model": "m", "params": {"messages": []}}, r"'messages': is made of the item"),
        ({"model": "m", "params": {"a": float("nan")}}, r"'a': nan is not JSON"),
        ({"model": "m", "temperature": -1}, r"^temperature: "),
        ({"model": "m", "stop": [1]}, r"^stop: "),
        ({"model": "m", "max_tokens_total": 0}, r"^max_tokens_total: "),
        ({"model": "m", "max_cost": float("inf")}, r"^max_cost: "),
        ({"model": "m", "trials": 0}, r"^trials: "),
        ({"model": "", "judge": ""}, r"^model: .*; judge: "),
    ],
)
def test_what_cannot_work_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(**settings)


@pytest.mark.parametrize("pasted", [*PASTED, "Bearer x", ""])
@pytest.mark.parametrize("setting", ["api_key_env", "judge_api_key_env"])
def test_a_key_where_a_name_is_due_is_refused_and_not_repeated(setting: str, pasted: str) -> None:
    with pytest.raises(ConfigError, match=f"^{setting}: must be the name") as caught:
        make(model="m", judge="j", **{setting: pasted})
    assert not pasted or pasted not in str(caught.value)


def test_a_key_for_a_judge_of_stored_answers_is_refused_too() -> None:
    with pytest.raises(ConfigError, match=r"^api_key_env: must be the name"):
        make(judge="j", api_key_env=PASTED[0])


def test_any_name_will_do_for_a_variable_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("openai_key_of_team_42", "k")
    assert read_judge(model="m", api_key_env="openai_key_of_team_42").api_key_env == "openai_key_of_team_42"


def test_a_judge_at_the_same_server_uses_its_key_and_one_elsewhere_does_not() -> None:
    server = {"base_url": "http://t/v1", "api_key_env": "T_KEY"}
    same = read_judge(model="m", **server)
    assert (same.base_url, same.api_key_env) == ("http://t/v1", "T_KEY")
    alone = read_judge(**server)
    assert (alone.base_url, alone.api_key_env) == ("http://t/v1", "T_KEY")
    elsewhere = read_judge(model="m", judge_base_url="http://j/v1", **server)
    assert (elsewhere.base_url, elsewhere.api_key_env) == ("http://j/v1", None)
    other = read_judge(target="azure", model="m", **server)
    assert (other.base_url, other.api_key_env) == (None, None)


def test_none_counts_as_not_given() -> None:
    assert make(model=None, seed=None, judge=None, timeout_s=None) == make()


def test_the_configuration_is_json_and_comes_back() -> None:
    config = make_config(["d.jsonl"], parse(LINE))
    assert type(config).model_validate(json.loads(config.model_dump_json())) == config


def test_stored_answers_are_there_once() -> None:
    with pytest.raises(ConfigError, match="stored answers use no trials; leave it out, or name a --model"):
        make_config(["x"], {"trials": 3})
    assert make_config(["x"], {"trials": 1}).trials == 1
