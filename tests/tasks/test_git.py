"""git is asked with care: what it says comes back, and what cannot be asked is said so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kbgate.tasks import git as module
from kbgate.tasks.domain import Model
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.git import run_git
from kbgate.tasks.index.provenance import provenance_of


def stand_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git that does what a test needs."""
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_what_git_says_comes_back_whatever_its_exit_code(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    assert run_git(tmp_path, "branch", "--show-current").stdout == b"main\n"
    unknown = run_git(tmp_path, "rev-parse", "--verify", "HEAD")
    assert unknown.returncode != 0
    assert b"fatal" in unknown.stderr


def test_git_speaks_english_and_asks_for_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "pt_BR.UTF-8")
    stand_in(tmp_path / "bin", 'echo "$LC_ALL $GIT_TERMINAL_PROMPT $*"; cat', monkeypatch)
    assert run_git(tmp_path, "status").stdout.decode() == f"C 0 -C {tmp_path} status\n"


def test_a_git_that_does_not_end_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path / "bin", "exec sleep 600", monkeypatch)
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.1)
    with pytest.raises(Unmeasured, match=r"git log did not end within 0.1 s; run it there by hand"):
        run_git(tmp_path, "log")
    assert commit_of(tmp_path) is None


def test_without_git_a_run_has_no_commit_and_no_review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unmeasured, match=r"git cannot be run \(No such file or directory\); install git"):
        run_git(tmp_path, "log")
    assert commit_of(tmp_path) is None


def commit_of(folder: Path) -> object:
    return provenance_of(folder, Model("m", "0" * 64, folder), "", {}).commit


def test_what_a_repository_has_git_start_is_given_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository's own settings name programs: core.fsmonitor runs at every `git status`."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    program, seen = tmp_path / "program", tmp_path / "seen"
    program.write_text(f"#!/bin/sh\nenv > {seen}\n")
    program.chmod(0o700)
    subprocess.run(["git", "-C", tmp_path, "config", "core.fsmonitor", program], check=True)
    monkeypatch.setenv("KBGATE_KEY", "correct horse")
    run_git(tmp_path, "status", "--porcelain")
    assert "PATH=" in seen.read_text()
    assert "KBGATE_KEY" not in seen.read_text()
    assert "correct horse" not in seen.read_text()
