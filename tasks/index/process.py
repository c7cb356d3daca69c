"""A few texts embedded in a process of its own: loading the model takes as long as a warm exam, so it is done beside the exam.

Texts go in as JSON and vectors come out as numpy arrays, through files that have no name. The process is given an environment
without kbgate's key, and ends by itself: it is asked once.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from kbgate.tasks.domain import Model
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index.bert import Bert
from kbgate.tasks.index.embedding import Text, embed_anew, precision_of
from kbgate.tasks.secret import environment
from kbgate.tasks.tables import Vectors

LIMIT_S = 3600.0
"""After which the process is no longer waited for."""

_FEW = 64

Given = tuple[Vectors, str]
"""Vectors, and the kind of numbers they were computed with."""


@contextlib.contextmanager
def beside(model: Model, texts: Sequence[Text], batch: int) -> Iterator[Callable[[], Given] | None]:
    """Start embedding; what the block is given waits for the vectors. None where no process can be started.

    The process does not outlive the block.
    """
    question = {"name": model.name, "weights": model.weights, "folder": str(model.folder), "batch": batch, "texts": texts}
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as said:
        asked.write(json.dumps(question).encode())
        asked.seek(0)
        # -P: what lies in the current folder is not imported.
        command = [sys.executable, "-P", "-m", __name__]
        # A few texts need no second thread, which would only wait for the exam's own.
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} if len(texts) <= _FEW else {}
        try:
            child = subprocess.Popen(command, stdin=asked, stdout=answer, stderr=said, env={**environment(), **threads})
        except OSError:
            yield None
            return
        with child:
            try:
                yield lambda: _answer(child, answer, said)
            finally:
                child.kill()


def _answer(child: subprocess.Popen[bytes], answer: IO[bytes], said: IO[bytes]) -> Given:
    try:
        code = child.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Unmeasured(f"the model gave nothing within {LIMIT_S:g} s; run it again on a machine that does less") from None
    if code != 0:
        said.seek(0)
        last = (said.read().decode(errors="replace").strip() or "it said nothing").split("\n")[-1]
        raise Unmeasured(f"the process that embeds texts again ended with {code} ({last}); run it again")
    answer.seek(0)
    try:
        with np.load(answer, allow_pickle=False) as arrays:
            return np.asarray(arrays["vectors"], np.float32), str(arrays["precision"])
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise Unmeasured(f"the process that embeds texts again gave no vectors ({error}); run it again") from None


def main() -> None:
    """The process itself: one question on standard input, one answer on standard output."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    asked = json.load(sys.stdin.buffer)
    model = Model(asked["name"], asked["weights"], Path(asked["folder"]))
    vectors, precision = _embedded(model, [(prefix, text) for prefix, text in asked["texts"]], asked["batch"])
    with answer:
        np.savez(answer, vectors=vectors, precision=np.array(precision))


def _embedded(model: Model, texts: Sequence[Text], batch: int) -> Given:
    """A few texts without loading torch, where the model is of a kind that can be computed so."""
    if len(texts) <= _FEW:
        with contextlib.suppress(Exception):  # whatever it is that is not understood: the model itself is asked
            return Bert(model.folder).embed([prefix + text for prefix, text in texts]), "float32"
    return embed_anew(model, texts, batch), precision_of(model)


if __name__ == "__main__":
    main()
