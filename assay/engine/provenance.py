"""Provenance: which code, and which commit of the user's project, made a run."""

from __future__ import annotations

import shutil
import subprocess
from importlib import metadata


def read_code_version() -> str:
    """Return the installed version of assay."""
    return metadata.version("assay")


def read_git_state() -> tuple[str | None, bool | None]:
    """Return commit and dirtiness of the working directory's repository; nulls outside of one."""
    commit = _run_git("rev-parse", "HEAD")
    if commit is None:
        return None, None
    changes = _run_git("status", "--porcelain", "--untracked-files=no")
    return commit, None if changes is None else bool(changes)


def _run_git(*arguments: str) -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments, no shell
            [git, *arguments], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
