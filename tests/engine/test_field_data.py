"""Data files that broke other tools, read, run, stored and written out again."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import assay
from assay.errors import ConfigError, InputError

if TYPE_CHECKING:
    from assay.api import Run

FIELD = Path(__file__).parents[1] / "golden" / "field"


def load(name: str, **reading: Any) -> pl.DataFrame:
    return pl.DataFrame(assay.load(FIELD / name, **reading))


def run(name: str, tmp_path: Path, **settings: Any) -> Run:
    settings = {"evaluators": "Contains", "max_errors": "100%", **settings}
    return assay.run(FIELD / name, store=tmp_path / "store", **settings)


def sources(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return [json.loads(text) for text in frame["item_json"]]


def test_f008_a_column_of_json_is_text_until_it_is_declared(tmp_path: Path) -> None:
    mapping = {"messages": "conversation", "response": "conversation"}
    with pytest.raises(ConfigError, match=r"column conversation is text .*expected a list of messages"):
        run("F008/conversation.csv", tmp_path, evaluators="Citations", mapping=mapping)
    done = run(
        "F008/conversation.csv",
        tmp_path,
        evaluators="Citations",
        mapping=mapping,
        json_columns=["conversation"],
        on_bad_row="quarantine",
    )
    assert (done.info["items"], done.info["quarantined"], done.scores.height) == (1, 1, 1)


def test_f009_a_key_that_comes_late_is_read_in_every_row() -> None:
    items = load("F009/late_key.jsonl")
    assert items["expected_response"].to_list() == [None] * 100 + [f"g{n}" for n in range(100, 1000)]


def test_f010_null_missing_and_empty_stay_apart() -> None:
    items = load("F010/null_then_string.jsonl")
    assert items["context"].null_count() == 2000
    assert items["context"].tail(3).to_list() == [f"ctx {n}" for n in range(2000, 2003)]
    first, last = sources(items)[0], sources(items)[-1]
    assert (first["context"], first["tags"], last["tags"]) == (None, [], ["t"])


def test_f011_a_column_of_every_kind_survives_parquet(tmp_path: Path) -> None:
    done = run("F011/drift.jsonl", tmp_path, evaluators="Citations")
    items = assay.query("select item_json, query from items order by source_line", store=done.store)
    assert items["item_json"].to_list() == (FIELD / "F011/drift.jsonl").read_text("utf-8").splitlines()
    kinds = [type(row.get("response", "missing")).__name__ for row in sources(items)]
    assert kinds == ["str", "list", "NoneType", "dict", "int", "str", "bool"]
    assert items["query"][-1] == ""


def test_f013_nan_is_refused_or_by_request_null() -> None:
    with pytest.raises(InputError, match=r"nan\.jsonl:101:\d+: NaN is not JSON|line 101: NaN is not JSON"):
        load("F013/nan.jsonl")
    items = load("F013/nan.jsonl", lenient=True)
    scores = [row["score"] for row in sources(items)]
    assert (len(scores), scores[100], scores[150], scores.count(None)) == (201, None, None, 2)


def test_f014_large_ids_keep_every_digit_through_parquet_sql_and_export(tmp_path: Path) -> None:
    done = run("F014/bigint.jsonl", tmp_path, evaluators="Citations", mapping={"response": "{{item.n}}"})
    ids = ["9007199254740993", "14933243513335727983", "92233720368547760001"]
    assert (
        assay.query("select item_id from items order by source_line", store=done.store)["item_id"].to_list()
        == ids
    )
    assert json.loads(load("F014/bigint.jsonl")["item_json"][2])["id"] == int(ids[2])


def test_f016_keys_that_differ_in_case_are_two_fields() -> None:
    upper = load("F016/case_keys.jsonl", mapping={"response": "{{item.Query}}", "context": "query"})
    assert upper.select("query", "response", "context").row(0) == ("lower", "upper", "lower")
    last = load("F016/dup_keys.jsonl", lenient=True)["response"].to_list()
    assert last[0] == "new"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("torn_tail", "3:"),
        ("garbage_middle", "2:"),
        ("two_per_line", "1:"),
        ("non_object", "2:"),
        ("pretty", "1:"),
    ],
)
def test_f017_nothing_is_skipped_silently(name: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run(f"F017/{name}.jsonl", tmp_path)
    assert str(caught.value).startswith(f"{FIELD / 'F017' / name}.jsonl:{place}")
    assert not list((tmp_path / "store").rglob("*"))


@pytest.mark.parametrize("name", sorted(path.name for path in (FIELD / "F019").iterdir()))
def test_f019_a_run_over_nothing_is_an_error_or_asked_for(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"no rows in {name}"):
        run(f"F019/{name}", tmp_path)
    assert not list((tmp_path / "store").rglob("*"))
    done = run(f"F019/{name}", tmp_path, allow_empty=True)
    assert (done.info["items"], done.info["status"], done.exit_code, done.summary.height) == (
        0,
        "complete",
        0,
        0,
    )


@pytest.mark.parametrize(
    ("name", "queries"),
    [
        ("rows.jsonl.gz", "abc"),
        ("rows.jsonl.zst", "abc"),
        ("members.jsonl.gz", "123"),
        ("misnamed.jsonl", None),
    ],
)
def test_f020_compression_is_seen_whatever_the_name(name: str, queries: str | None) -> None:
    items = load(f"F020/{name}")
    if queries is None:
        assert items.height == 1
    else:
        assert list(queries) in (items["query"].to_list(), items["item_id"].to_list())


@pytest.mark.parametrize(("name", "place"), [("trailing_comma", "5:2"), ("comments", "2:2")])
def test_f021_hand_edited_json_is_refused_at_its_place(name: str, place: str) -> None:
    with pytest.raises(InputError) as caught:
        load(f"F021/{name}.json")
    assert f"{name}.json:{place}: not JSON" in str(caught.value)


LONG = """
import resource, sys
import assay
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
assay.load(sys.argv[1])
before = peak()
table = assay.load(sys.argv[2])
print([len(text) for text in table["context"].to_pylist()], peak() - before)
"""


def test_f022_a_line_of_20_mib_is_read_whole_and_never_shown(tmp_path: Path) -> None:
    short, data = tmp_path / "short.jsonl", tmp_path / "long.jsonl"
    texts = ["short", "A" * (20 << 20), "short"]
    short.write_text('{"context": "short"}\n', encoding="utf-8")
    data.write_text("".join(json.dumps({"context": text}) + "\n" for text in texts), encoding="utf-8")
    command = [sys.executable, "-c", LONG, str(short), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lengths, _, peak = done.stdout.strip().rpartition(" ")
    assert lengths == "[5, 20971520, 5]"
    assert int(peak) < 10 * data.stat().st_size
    data.write_text(data.read_text(encoding="utf-8").replace("AA", '"A', 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        assay.load(data)
    assert len(str(caught.value)) < 1000


def test_f035_a_stored_answer_is_scored_only_without_another(tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text(
        '{"id": "1", "query": "q", "response": "stored", "ground_truth": "stored"}', encoding="utf-8"
    )
    stored = assay.run(data, evaluators="ExactMatch", store=tmp_path / "store")
    assert stored.scores["score"].to_list() == [1.0]
    with pytest.raises(ConfigError, match=r"sample\.\* needs a target"):
        assay.run(
            data,
            evaluators="ExactMatch",
            mapping={"response": "{{sample.output_text}}"},
            store=tmp_path / "store",
        )


def test_f069_ids_of_every_kind(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'x' stands for two different items: .*dups\.jsonl:1 and .*:2"):
        load("F069/dups.jsonl")
    lines = (FIELD / "F069/dups.jsonl").read_text("utf-8").splitlines()
    data = tmp_path / "rest.jsonl"
    data.write_text("\n".join([lines[0], *lines[2:5], *lines[6:]]), encoding="utf-8")
    ids = pl.DataFrame(assay.load(data))["item_id"].to_list()
    assert ids[0] == "x"
    assert ids[2] == f"{ids[1]}-2"
    assert ids[3] == "1"
    assert all(len(each) == 16 for each in (ids[1], *ids[4:]))
    data.write_text("\n".join([*lines[6:], *lines[2:5], lines[0]]), encoding="utf-8")
    assert set(assay.load(data)["item_id"].to_pylist()) == set(ids)


QUERIES = """
import json, sys
from assay.cli.app import main

def ask(*tokens):
    sys.argv = ["assay", *query, *tokens]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code

*query, forms = sys.argv[1:]
for form in json.loads(forms):
    ask("--format", form, "-o", "out." + form)
    print("begin", form, flush=True)
    if form != "parquet":
        ask("--format", form)
"""


def test_f072_results_are_written_as_utf8_whatever_the_locale(tmp_path: Path) -> None:
    store = run("F072/texts.jsonl", tmp_path, evaluators="Citations").store
    query = ["query", "select response from items order by source_line limit 3", "--store", store]
    forms = ["json", "csv", "table", "md", "parquet"]
    environment = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-X", "warn_default_encoding", "-W", "error", "-c", QUERIES]
    done = subprocess.run(
        [*command, *query, json.dumps(forms)], env=environment, cwd=tmp_path, check=True, capture_output=True
    )
    shown = dict(part.split(b"\n", 1) for part in done.stdout.split(b"begin ")[1:])
    for form in forms:
        out = tmp_path / f"out.{form}"
        if form == "parquet":
            text = "\n".join(pl.read_parquet(out)["response"])
        else:
            text = out.read_text(encoding="utf-8")
            assert b"\\u5317" in shown[form.encode()], form
        assert "北京" in text, form
        assert "🤗" in text, form


def test_f072_a_nul_survives_storage_and_is_never_lost_in_csv(tmp_path: Path) -> None:
    done = run("F072/texts.jsonl", tmp_path, evaluators="Citations")
    assert done.samples["output_text"].to_list()[3] == "nul \0 inside"
    out = tmp_path / "out.csv"
    command = [
        sys.executable,
        "-m",
        "assay",
        "query",
        "select response from items",
        "--store",
        done.store,
        "-o",
        str(out),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        with out.open(encoding="utf-8", newline="") as file:
            assert "nul \0 inside" in [row[0] for row in csv.reader(file)]
    else:
        assert "NUL" in ended.stderr
