"""A promoter as a process of its own: the real promotion of tiny builds, whose exam is that of a desk.

`python -m tests.tasks.production.promoter FOLDER URL BEAT [PAUSE]`: one promotion for each line it is given, "promote", or
"stop" for one that stops itself (SIGSTOP) between exam and pointer; for each a line of JSON says what came of it.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import os
import signal
import sys
import time
import uuid
from pathlib import Path

from kbgate.tasks.conclusions import Evaluation
from kbgate.tasks.errors import KbgateError
from kbgate.tasks.production import lease
from kbgate.tasks.production.promotion import begin, promote
from kbgate.tasks.production.server import ServerProduction
from tests.exams import Desk, filler
from tests.tasks.production.builds import ROWS, fill

HIT = filler("c0")


def evaluation_of(folder: Path) -> Evaluation:
    """An exam that passes."""
    folder.mkdir(parents=True, exist_ok=True)
    desk = Desk(folder)
    desk.case("a")
    desk.accept({"a": HIT})
    evaluation = desk.evaluation({"a": HIT})
    return dataclasses.replace(evaluation, counts=evaluation.counts.model_copy(update={"rows": ROWS}))


def renamed(evaluation: Evaluation) -> Evaluation:
    """The same exam of another build."""
    run = f"20260601T023000Z-{uuid.uuid4().hex[:6]}"
    return dataclasses.replace(evaluation, run_id=run, build=f"desk-{uuid.uuid4().hex[:16]}-{run}")


def main(folder: Path, url: str, beat: float, pause: float) -> None:
    lease.BEAT_S = beat
    evaluation, production = evaluation_of(folder / "suite"), ServerProduction(folder / "home", "desk", url, "desk")
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        examined = renamed(evaluation)
        outcome = {"build": examined.build, "exit": 0, "said": ""}
        try:
            with production.held():
                now = dt.datetime.now(dt.UTC)
                pointer = begin(production, now)
                fill(production, examined.build)
                time.sleep(pause)
                if line.strip() == "stop":
                    os.kill(os.getpid(), signal.SIGSTOP)
                outcome["exit"] = promote(production, examined, now, pointer).exit_code
        except KbgateError as error:
            outcome |= {"exit": error.exit_code, "said": f"{type(error).__name__}: {error}"}
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
