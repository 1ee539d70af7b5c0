"""The command `assay`: names of the commands, and what an error looks like from outside."""

from __future__ import annotations

import gc
import io
import sys
import traceback
from typing import TYPE_CHECKING

from assay.errors import AssayError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import BoundArguments

    from cyclopts import App, CycloptsError
    from rich.panel import Panel

STDIN = {"-": "/dev/stdin"}  # the parser takes a lone dash for an option
EXIT_BUG, EXIT_INTERRUPTED = 70, 130
OVERVIEW: tuple[list[str], ...] = ([], ["--help"], ["-h"])
MORE = "`assay COMMAND --help` shows the options of a command with examples; `assay --version` the version."

HELP = """Score the answers of LLMs and agents in batches; keep every run; ask it with SQL.

Start here: assay run data/foundry/support.jsonl --evaluators ExactMatch,PartialMatch
"""

EXAMPLES = {
    "run": """assay run data/foundry/support.jsonl --evaluators ExactMatch,PartialMatch
assay run data/m365/support-desk.json --responses data/answers/m365-support-desk.jsonl
assay run data/csv/faq.csv --evaluators Contains --option Contains.case_sensitive=true
assay run data/m365/knowledge.json --model gpt-4o-mini --judge gpt-4o
assay run data/foundry/support.jsonl --model gpt-4o-mini --temperature 0 --max-cost 2 --deadline 30m
assay run data/m365/knowledge.json --target python:agent.py:answer --trials 3 --evaluators ExactMatch
assay run data/foundry/support.jsonl --target staging --judge strict
assay run --resume latest --max-cost 5""",
    "plan": """assay plan data/m365/knowledge.json --model gpt-4o-mini --judge gpt-4o
assay plan data/foundry/support.jsonl --judge gpt-4o --evaluators Relevance --reuse all --format json""",
    "batch": """assay run data/foundry/support.jsonl --model gpt-4o-mini --judge gpt-4o --batch submit
assay batch status latest
assay batch collect latest""",
    "runs": """assay runs
assay runs --limit 100 --format json""",
    "show": """assay show latest
assay show latest~1 --failed --format csv -o failed.csv""",
    "query": """assay query "select evaluator, count(*) filter (where passed) from scores group by 1"
assay query "from scores" -o scores.parquet""",
    "evaluators": """assay evaluators
assay evaluators PartialMatch""",
    "validate": """assay validate data/m365/support-desk.json --strict
assay validate 'data/**/*.jsonl' data/csv/faq.csv --format json""",
    "convert": """assay convert data/foundry/support.jsonl support.csv
assay convert data/csv/faq.csv faq.json --to m365 --fail-on-loss
assay convert old-prompts.json --in-place""",
    "init": """assay init --template knowledge --to foundry
assay init --template agent --to m365 --out evals/evals.json""",
    "sample": """assay sample data/foundry/support.jsonl -n 20 --seed 1 --by category -o sample.jsonl
assay sample evals.json -n 5 > small.json""",
}
COMMANDS = (
    ("run", "assay.cli.run:run", "Evaluate datasets and keep the result."),
    ("plan", "assay.cli.plan:plan", "Say what a run would ask, count and cost."),
    ("batch", "assay.cli.batch:batch", "Look at the jobs of a submitted run, or collect their answers."),
    ("runs", "assay.cli.history:runs", "List the runs of the store."),
    ("show", "assay.cli.history:show", "Show the summary of a run, or its failed rows."),
    ("query", "assay.cli.query:query", "Answer SQL over all runs."),
    ("evaluators", "assay.cli.evaluators:evaluators", "List the evaluators, or explain one."),
    ("validate", "assay.cli.validate:validate", "Check dataset files without running anything."),
    ("convert", "assay.cli.convert:convert", "Write a dataset in another dialect, and say what is lost."),
    ("init", "assay.cli.init:init", "Write a starter dataset."),
    ("sample", "assay.cli.sample:sample", "Write a reproducible sample of a dataset."),
)


def build_app() -> App:
    """Return the command line with all commands, none of them imported yet."""
    from cyclopts import App  # the overview does without it, and comes at once

    app = App(name="assay", help=HELP, help_format="plaintext", version_flags=["--version", "-V"])
    for name, place, what in COMMANDS:
        app.command(place, name=name, help=what, help_epilogue=f"Examples:\n{EXAMPLES[name]}")
    return app


def write_overview() -> str:
    """Return what `assay --help` says."""
    width = max(len(name) for name, _, _ in COMMANDS)
    commands = "\n".join(f"  {name:{width}}  {what}" for name, _, what in COMMANDS)
    return f"Usage: assay COMMAND [OPTIONS]\n\n{HELP}\nCommands:\n{commands}\n\n{MORE}"


def main() -> None:
    """Run the command line and exit with the code of the outcome."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a narrow terminal is no reason to fail
    sys.exit(run_app(sys.argv[1:]))


def run_app(tokens: list[str]) -> int:
    """Run one command and return its exit code; every error becomes one message on stderr."""
    if tokens in OVERVIEW:
        print(write_overview())  # noqa: T201 - what was asked for, on standard output
        return 0
    tokens = [STDIN.get(token, token) for token in tokens]
    try:
        _check_text(tokens)
        command, bound = _load_command(tokens)
        result = command(*bound.args, **bound.kwargs)
    except AssayError as error:
        _say(str(error), tokens)
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted; nothing was committed", tokens)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; there is nobody to tell
        return 0
    except Exception as error:  # noqa: BLE001 - the last line of defence: a bug becomes one line
        place = "" if _debugs(tokens) else "; --log-level debug shows where"
        _say(f"internal error: {type(error).__name__}: {error}{place}", tokens)
        return EXIT_BUG
    return result if isinstance(result, int) else 0


def _load_command(tokens: list[str]) -> tuple[Callable[..., object], BoundArguments]:
    """Parse the line, which imports the command; without garbage collection that is a tenth quicker."""
    gc.disable()
    try:
        command, bound, _ = build_app().parse_args(tokens, error_formatter=_frame_error)
    finally:
        gc.enable()
    return command, bound


def _frame_error(error: CycloptsError) -> Panel:
    from cyclopts import CycloptsPanel

    from assay.contracts.hiding import hide_shown  # only after a mistake

    return CycloptsPanel(hide_shown(str(error)))


def _check_text(tokens: list[str]) -> None:
    for token in tokens:
        if not token.isascii() and any("\ud800" <= character <= "\udfff" for character in token):
            raise ConfigError(f"argument {token!r} is not valid text in this locale's encoding")


def _say(message: str, tokens: list[str]) -> None:
    from assay.contracts.hiding import hide_shown  # the overview does without it

    trace = traceback.format_exc() if _debugs(tokens) else ""
    print(hide_shown(f"{trace}assay: {message}"), file=sys.stderr)  # noqa: T201 - the one place errors are printed


def _debugs(tokens: list[str]) -> bool:
    joined = " ".join(tokens)
    return "--log-level debug" in joined or "--log-level=debug" in joined
