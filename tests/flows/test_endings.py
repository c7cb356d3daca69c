"""How the process ends from outside: signals, readers that went away, a disk that is full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbgate.flows.endings import Stopped, stop_at_signals
from tests.conftest import write_suite

EXAM = "import sys; from kbgate.flows.__main__ import main; main()"
ENDLESS = """
import sys, time
from kbgate.flows import cli, __main__ as door
from kbgate.tasks.index.own_folder import own_folder
def wait(arguments):
    with own_folder() as folder:
        (folder / "store").write_text("much")
        print(folder, flush=True)
        time.sleep(600)
cli.command_line = wait
door.main()
"""
"""The console script, whose command has a folder and goes on for ever."""


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """That process, and in `folder` the folder it has."""
    places = {"TMPDIR": str(tmp_path), "KBGATE_HOME": str(tmp_path / "home")}
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **places}
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_stopped_run_is_an_error_and_leaves_nothing(endless: subprocess.Popen[str], number: signal.Signals) -> None:
    assert endless.stdout is not None
    folder = Path(endless.stdout.readline().strip())
    assert (folder / "store").exists()
    endless.send_signal(number)
    _, said = endless.communicate(timeout=60)
    assert endless.returncode == 4, said
    assert "Traceback" not in said
    assert not folder.exists()


@pytest.mark.slow
def test_what_a_killed_run_left_is_swept_by_the_next_and_what_a_live_one_has_is_not(
    endless: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from kbgate.tasks.index.own_folder import own_folder

    assert endless.stdout is not None
    folder = Path(endless.stdout.readline().strip())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with own_folder():
        assert (folder / "store").exists()
    endless.kill()
    endless.wait()
    with own_folder() as own:
        assert not folder.exists()
        assert own.exists()


def test_a_signal_is_no_exception_that_a_question_could_raise() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        stop_at_signals()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, "nohup"
        with pytest.raises(Stopped, match="stopped by SIGTERM"):
            signal.raise_signal(signal.SIGTERM)
        assert not issubclass(Stopped, Exception)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture
def faq(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "faq", "bm25", {"vpn": "how the vpn is reached", "leave": "days of leave"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirection", "code"),
    [
        ("2>&1 | head -1", 0), ("2>&1 | true", 0), ("--json | true", 0), (">&- 2>&-", 0), ("2>/dev/full", 0),
        ("--json >/dev/full", 4), ("nonsense 2>/dev/full", 2), ("nonsense 2>&1 | true", 2),
    ],
)  # fmt: skip
def test_who_reads_what_is_said_changes_no_exit_code(faq: Path, redirection: str, code: int) -> None:
    kbgate = f'"{sys.executable}" -c "{EXAM}"'
    floors = "--floor contract=0.9"
    if "nonsense" not in redirection:
        assert subprocess.run(["bash", "-c", f"{kbgate} baseline update {faq} --reason first"], check=False).returncode == 0
    script = f"{kbgate} evaluate {faq} {floors} {redirection}; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", script], check=False, capture_output=True).returncode == code


@pytest.mark.slow
def test_a_narrow_encoding_takes_no_verdict(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "faq", "bm25", {"知识库": "days of leave"})
    narrow = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    command = [sys.executable, "-c", EXAM, "explain", str(suite), "知识库"]
    answer = subprocess.run(command, capture_output=True, check=False, env=narrow)
    assert answer.returncode == 0, answer.stderr
    assert rb"\u77e5" in answer.stdout
