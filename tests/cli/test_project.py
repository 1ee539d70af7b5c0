from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from assay.errors import ConfigError
from assay.settings import Settings, make_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.config import RunConfig

MODEL = """
[targets.mine]
kind = "azure"
model = "d"
base_url = "https://r.example"
api_version = 2023-05-15
api_key_env = "MY_KEY"
api = "responses"
stream = true
system = "Be brief."
temperature = 0
top_p = 0.5
max_output_tokens = 9
params = {effort = "low", n = 1}
"""
FILES = {
    "a.py": "def f(query): ...",
    "s.txt": "\ufeffSystem",
    "p.txt": "{{item.query}}",
    "h.toml": "url = 'http://h'",
    "own.toml": """
[targets]
py = {kind = "python", place = "a.py:f", system = "@s.txt", prompt_template = "p.txt"}
h = {kind = "http", place = "h.toml"}
module = {kind = "python", place = "pkg.mod:f"}
c = {kind = "cmd", place = "./run.sh -x"}
""",
}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    monkeypatch.chdir(tmp_path)

    def write_file(text: str) -> Path:
        path = tmp_path / "assay.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def make(**settings: Any) -> RunConfig:
    return make_config([], Settings(**settings))


def test_a_named_target_is_all_that_its_table_says(write: Callable[[str], Path]) -> None:
    write(MODEL)
    target = make(target="mine").target
    assert target.kind == "azure"
    assert target.system == "Be brief."
    assert target.endpoint is not None
    assert target.endpoint.model_dump() == {
        "model": "d",
        "provider": "azure",
        "base_url": "https://r.example",
        "api_key_env": "MY_KEY",
        "api_version": "2023-05-15",
        "api": "responses",
        "stream": True,
    }
    drawing = target.sampling
    assert (drawing.temperature, drawing.top_p, drawing.max_output_tokens) == (0, 0.5, 9)
    assert drawing.params == {"effort": "low", "n": 1}


def test_what_is_given_beside_a_name_wins(write: Callable[[str], Path]) -> None:
    write(MODEL)
    given: dict[str, Any] = {"responses_api": False, "stream": False, "system": "Be long.", "seed": 4}
    target = make(target="mine", model="e", temperature=1.5, params={"n": 2}, **given).target
    assert target.endpoint is not None
    assert (target.endpoint.model, target.endpoint.api, target.endpoint.stream) == ("e", "chat", False)
    assert (target.system, target.sampling.temperature, target.sampling.seed) == ("Be long.", 1.5, 4)
    assert target.sampling.params == {"effort": "low", "n": 2}


@pytest.mark.parametrize(  # field case F060
    ("written", "read"), [("2023-05-15", "2023-05-15"), ("20230515", "20230515"), ('"v1"', "v1")]
)
def test_a_version_is_text_however_it_is_written(
    write: Callable[[str], Path], written: str, read: str
) -> None:
    write(
        f'[targets.a]\nkind="azure"\nmodel="d"\napi_version={written}\n[judges.b]\nmodel="j"\n'
        f'provider="azure"\napi_version={written}'
    )
    config = make(target="a", judge="b")
    assert config.target.endpoint is not None
    assert config.judge is not None
    assert (config.target.endpoint.api_version, config.judge.api_version) == (read, read)


def test_a_named_judge_takes_nothing_from_the_target(write: Callable[[str], Path]) -> None:
    write('[judges.fast]\nmodel = "j"\napi_key_env = "J_KEY"\n')
    settings: dict[str, Any] = {"model": "m", "base_url": "http://target/v1", "api_key_env": "T_KEY"}
    judge = make(judge="fast", **settings).judge
    assert judge is not None
    assert (judge.model, judge.base_url, judge.api_key_env) == ("j", None, "J_KEY")
    moved = make(judge="fast", judge_base_url="http://judge/v1", **settings).judge
    assert moved is not None
    assert (moved.base_url, moved.api_key_env) == ("http://judge/v1", "J_KEY")


def test_a_judge_that_has_no_table_is_a_model(write: Callable[[str], Path]) -> None:
    write('[judges.fast]\nmodel = "j"\n')
    judge = make(judge="gpt-4o").judge
    assert judge is not None
    assert judge.model == "gpt-4o"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    named = ("py", "h", "module", "c")
    found = {name: make(target=name, config=folder / "own.toml").target for name in named}
    assert (found["py"].system, found["py"].prompt) == ("System", "{{item.query}}")
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in FILES.items()}
    assert [(found[name].place, found[name].place_sha256) for name in named] == [
        (f"{folder}/a.py:f", hashes["a.py"]),
        (f"{folder}/h.toml", hashes["h.toml"]),
        ("pkg.mod:f", None),
        ("./run.sh -x", None),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[target.x]", r"assay\.toml: unknown table 'target'; did you mean targets\?"),
        ("x = 1", r"unknown table 'x'.*known: judges, targets"),
        ("targets = 1", r"\[targets\]: must be a table"),
        ("targets.x = 1", r"\[targets\.x\]: must be a table"),
        (
            "[targets.x]\ntemprature = 1",
            r"\[targets\.x\]: unknown key 'temprature'; did you mean temperature",
        ),
        (
            "[targets.x]\nresponses_api = true",
            r"\[targets\.x\]: unknown key 'responses_api'; did you mean api",
        ),
        ("[targets.x]\nconcurrency = 1", r"\[targets\.x\]: unknown key 'concurrency'"),
        ("[judges.x]\nmodel = 'm'\ntemperature = 1", r"\[judges\.x\]: unknown key 'temperature'"),
        ("[judges.x]\nprovider = 'azure'", r"\[judges\.x\]: model: Field required"),
        ("[targets.x]\nkind = 'opnai'", r"\[targets\.x\]: unknown kind 'opnai'; did you mean openai"),
        ("[targets.x]\nkind = 'http'", r"\[targets\.x\]: place: .*needs a place: FILE\.toml"),
        ("[targets.x]\nmodel = 'm'\nplace = 'p'", r"\[targets\.x\]: place: .*has no place"),
        ("[targets.x]\nsystem = 1", r"\[targets\.x\]: system: must be a text"),
        ("[targets.x]\ntop_p = 2", r"\[targets\.x\]: top_p: .*less than or equal to 1"),
        (
            "[targets.x]\nmodel = 'm'\nbase_url = 'http://a:b@h'",
            r"\[targets\.x\]: base_url: must not carry user",
        ),
        ("[targets.openai]\nmodel = 'm'", r"\[targets\.openai\]: this name has a meaning"),
        ("[judges.'azure:x']\nmodel = 'm'", r"\[judges\.azure:x\]: this name has a meaning"),
        ("[targets.x]\n\napi_version = 2024-12-01-preview", r"assay\.toml: is no TOML: .*line 3.*quotes"),
        ("a = " + "[" * 20_000, r"assay\.toml: is nested too deeply"),
    ],
)
def test_what_nobody_understands_is_refused_at_its_place(
    write: Callable[[str], Path], text: str, message: str
) -> None:
    write(text)
    with pytest.raises(ConfigError, match=message):
        make(judge="any")


@pytest.mark.parametrize("key", ["api_key", "api-key", "token"])
def test_a_key_in_the_file_is_refused_and_not_repeated(write: Callable[[str], Path], key: str) -> None:
    write(f'[targets.x]\nmodel = "m"\n{key} = "sk-marked-secret"\n')
    with pytest.raises(ConfigError, match=r"\[targets\.x\].*api_key_env") as caught:
        make(target="x")
    assert "sk-marked" not in str(caught.value)


def test_a_name_that_stands_nowhere_is_refused_with_what_there_is(write: Callable[[str], Path]) -> None:
    with pytest.raises(ConfigError, match=r"unknown target 'mine'.*known: .*http:FILE\.toml"):
        make(target="mine")
    write(MODEL)
    with pytest.raises(ConfigError, match=r"assay\.toml: unknown target 'mne'; did you mean mine"):
        make(target="mne")


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read: No such file"):
        make(config=tmp_path / "none.toml")


def test_a_run_that_names_nobody_does_not_read_the_file(write: Callable[[str], Path]) -> None:
    write("no toml at all")
    assert make(model="m").target.kind == "openai"


def test_a_byte_order_mark_is_no_fault(write: Callable[[str], Path]) -> None:
    write("\ufeff" + MODEL)
    assert make(target="mine").target.kind == "azure"
