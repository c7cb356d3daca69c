"""Is a run's verdict what its rankings, the golden set and the baseline say? No model, no store, nothing asked again.

Everything that follows from the rankings is computed anew and held against the files: scores, figures, changes, reasons,
verdict, both TREC files. What cannot follow from them (times, outcomes, provenance, the report's words) is guarded by the
digests that verdict.json holds of every other file and of itself.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pydantic import JsonValue

from kbgate.tasks.clock import Clock
from kbgate.tasks.comparison.compare import exam_of
from kbgate.tasks.conclusions import Evaluation, Exam
from kbgate.tasks.domain import Inputs, Mode
from kbgate.tasks.errors import InputError, Problem, Refused, counted, named
from kbgate.tasks.findings import Causes
from kbgate.tasks.gate.policy import policy_fingerprint
from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.index.fingerprint import golden_fingerprint, kb_fingerprint
from kbgate.tasks.inputs.subset import select_fast
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.results import Run
from kbgate.tasks.runs.authentication import doubt_of
from kbgate.tasks.runs.columns import differing_scores, read_run
from kbgate.tasks.runs.document import FILE, Basis, VerdictDocument, parts_of, read_document, verdict_document
from kbgate.tasks.runs.parts import previous_of
from kbgate.tasks.runs.runfiles import EARLIER, OTHERS, digests_of, seal_of, trec_judgments, trec_run
from kbgate.tasks.schema import Fingerprints
from kbgate.tasks.secret import secret


def read_verdict(folder: Path) -> VerdictDocument:
    """A run's verdict.json; raises `InputError`, one sentence, where it is none that kbgate wrote."""
    return read_document(folder / FILE)


def read_unbroken(folder: Path) -> VerdictDocument:
    """A run's verdict, which is as it was written, by this process's key where there is one, as are the files beside it.

    Raises `Refused` where anything was edited, added or lost since. It does not recompute: `verify` does.
    """
    document = read_verdict(folder)
    broken = [f"{FILE}: {doubt}" for doubt in (doubt_of(document),) if doubt] + list(_edited(folder, document))
    if broken:
        command = f"kbgate evaluate {shlex.quote(document.inputs.suite)}"
        raise Refused(f"the run in {folder} is not as kbgate wrote it: {'; '.join(broken)}; next: {command}")
    return document


def is_whole(folder: Path) -> bool:
    """Whether a verdict stands in its run's folder, and was not carried away alone."""
    return any((folder / name).exists() for name in OTHERS)


def distrust(folder: Path, document: VerdictDocument, load: Callable[[], Inputs]) -> list[str]:
    """What the files beside a verdict say against it, a sentence each, where they are there.

    With a key they need only be those that the verdict holds the digests of; without one everything is recomputed from them,
    and `load` gives what that takes.
    """
    if not is_whole(folder):
        return []
    return list(_edited(folder, document)) if secret() else verify(folder, document, load())


def verify(folder: Path, document: VerdictDocument, inputs: Inputs) -> list[str]:
    """What differs between a run's files and what follows from its rankings, a sentence each; empty where all agrees.

    Raises `InputError` where golden set, policy, baseline or cards are no longer those of the run.
    """
    _refuse_other_inputs(document, inputs)
    differences = [f"{FILE}: {doubt}" for doubt in (doubt_of(document),) if doubt]
    try:
        differences += _edited(folder, document)
        run = read_run(folder / "run.parquet", document.method, document.mode)
        path = folder / EARLIER
        earlier = read_run(path, document.method, document.mode) if path.exists() else None
        return [*differences, *_recomputed(folder, document, inputs, run, earlier)]
    except (KeyError, TypeError, AttributeError, ValueError, OSError, pa.ArrowException) as error:
        return [*differences, f"the run's files cannot be read as kbgate wrote them ({type(error).__name__}: {error})"]


def _refuse_other_inputs(document: VerdictDocument, inputs: Inputs) -> None:
    current = Fingerprints(
        index=document.fingerprints.index,
        golden=golden_fingerprint(inputs.golden.cases),
        policy=policy_fingerprint(inputs.suite),
        baseline=inputs.baseline.fingerprint if inputs.baseline else "",
    )
    written, pair = document.fingerprints.plain(), document.provenance.merged
    saw = f"merge {pair.target[:10]} into {pair.change[:10]}, as the run saw them" if pair else "check out what the run saw"
    problems = [
        Problem(str(inputs.suite.given), 0, f"its {part} was {written[part] or 'none'} in the run and is "
                f"{value or 'none'} now; {saw}")
        for part, value in current.plain().items()
        if written[part] != value
    ]  # fmt: skip
    if document.kb != kb_fingerprint(inputs.kb.cards):
        problems.append(Problem(str(inputs.suite.given), 0, f"its cards are not those of the run; {saw}"))
    if problems:
        raise InputError(problems)


def _edited(folder: Path, document: VerdictDocument) -> Iterator[str]:
    if document.seal != seal_of(document):
        yield f"{FILE} is not what was written: its seal does not fit"
    present = digests_of(folder)
    for name in sorted({*present, *document.files}):
        if name not in present:
            yield f"{name} is gone"
        elif name not in document.files:
            yield f"{name} was not written by the run"
        elif present[name] != document.files[name]:
            yield f"{name} is not what was written"


def _recomputed(folder: Path, document: VerdictDocument, inputs: Inputs, run: Run, earlier: Run | None) -> Iterator[str]:
    yield from _other_than_the_suite_says(document, inputs)
    exam = _exam(document, inputs, run, earlier)
    evaluation = Evaluation(
        exam=exam,
        verdict=judge(exam),
        run_id=document.run,
        build=document.build,
        folder=folder,
        fingerprints=document.fingerprints,
        provenance=document.provenance,
        counts=document.counts,
    )
    written, anew = document.plain(), verdict_document(evaluation).plain()
    for part in parts_of(Basis.RANKINGS):
        yield from _differences(part, written[part], anew[part])
    for row in differing_scores(folder / "scores.parquet", exam.scores):
        figure = f"{row['metric']} of {row['case']} ({row['lane']})"
        yield f"scores.parquet: {figure} says {row['written']}, is {row['anew']}"
    for name, text in (("run.trec", trec_run(run)), ("qrels.trec", trec_judgments(exam.scores.placements))):
        if sorted((folder / name).read_text(encoding="utf-8").splitlines()) != sorted(text.splitlines()):
            yield f"{name} does not hold the rankings of run.parquet"


def _other_than_the_suite_says(document: VerdictDocument, inputs: Inputs) -> Iterator[str]:
    """What follows from no ranking, and from the suite's files all the same: mode, method, how much there was."""
    asked, cases, suite = frozenset(document.inputs.asked), inputs.golden.cases, inputs.suite
    if document.mode == Mode.FULL and len(asked & set(cases)) != len(cases):
        yield f"{FILE}: a full run asks all {len(cases)} cases, and inputs.asked names {len(asked & set(cases))}"
    if document.mode == Mode.FAST:
        drawn = set(select_fast(cases, suite.fast, inputs.baseline))
        if asked - set(document.cases.touched) != drawn:
            yield f"{FILE}: a fast run asks the {len(drawn)} cases of the subset beside what is touched, and this one others"
    if document.method != suite.retrieval.method:
        yield f"{FILE}: method says {document.method}, is {suite.retrieval.method}"
    for what, count in (("cards", len(inputs.kb.cards)), ("cases", len(cases))):
        if (written := getattr(document.counts, what)) != count:
            yield f"{FILE}: counts.{what} says {written}, is {count}"


def suite_of_run(folder: Path, document: VerdictDocument) -> Path:
    """The folder of a run's suite: as it was typed, from here, or from a folder that the run's own stands in.

    Raises `InputError` where there is none of its name.
    """
    for start in (Path(), *folder.resolve().parents):
        place = start / document.inputs.suite
        try:
            if place.is_dir() and load_suite(place).name == document.suite:
                return place
        except InputError:
            continue
    sentence = (
        f"is nowhere to be found, from here or beside {folder}; next: kbgate verify {shlex.quote(str(folder))} --suite SUITE"
    )
    raise InputError([Problem(document.inputs.suite, 0, sentence)])


def _exam(document: VerdictDocument, inputs: Inputs, run: Run, earlier: Run | None) -> Exam:
    """The exam that the run's rankings make, of the cases it asked and the cards it was told of."""
    asked = frozenset(document.inputs.asked)
    exam = exam_of(
        dataclasses.replace(inputs, announced=tuple(document.inputs.announced), judges_edits=document.inputs.judges_edits),
        {name: case for name, case in inputs.golden.cases.items() if name in asked},
        run,
        Clock(document.time, document.valid_at or document.time),
        touched=tuple(document.cases.touched),
        previous=previous_of(document.inputs.previous),
        causes=_causes(document),
        earlier=earlier,
    )
    return dataclasses.replace(exam, provenance=document.provenance)


def _causes(document: VerdictDocument) -> Causes:
    """The causes as they are written, where the verdict took any from the diagnosis: they cannot be recomputed."""
    why = document.diagnosis
    unproven = {finding.case: finding.sentence for finding in reversed(why.findings) if not finding.proven}
    return Causes(tuple(document.inputs.explained), unproven, why.trouble)


def taken_as_written(document: VerdictDocument) -> list[str]:
    """What a run's verdict or report rests on that `verify` does not recompute, a noun phrase each."""
    guarded = [name for name in parts_of(Basis.SEAL) if name not in _OF_THE_SEAL and document.plain().get(name) is not None]
    parts = ", ".join(_named_by_what_they_say(document, guarded))
    told = [f"{parts}: nothing but the seal says so, and whoever edits can seal again"]
    cases = list(dict.fromkeys(finding.case for finding in document.diagnosis.findings))
    if not cases:
        return told
    asked = any(reason.check == "acceptance" for reason in document.reasons) or bool(document.inputs.explained)
    asks = ", for which [acceptance] asks" if asked else ""
    return [*told, f"the causes of {counted(len(cases), 'case')} ({named(cases)}){asks}"]


_OF_THE_SEAL = {"schema", "files", "seal", "hmac", "kb", "method"}
"""Parts that are held against the files themselves, or against the suite's."""


def _named_by_what_they_say(document: VerdictDocument, parts: Sequence[str]) -> Iterator[str]:
    """Parts of a verdict by name, with what a reader would rely on."""
    counts, provenance, commit = document.counts, document.provenance, document.provenance.commit
    said = {
        "build": document.build,
        "time": document.time.isoformat(timespec="seconds"),
        "mode": str(document.mode),
        "fingerprints": f"index {document.fingerprints.index}",
        "counts": f"{counts.chunks} chunks, {counts.rows} rows",
        "provenance": f"model {provenance.model.name or 'none'}, commit {commit.hash[:12] if commit else 'none'}",
    }
    return (f"{part} ({said[part]})" if part in said else part for part in parts)


def _differences(place: str, written: JsonValue, anew: JsonValue) -> Iterator[str]:
    """The places where two JSON values differ, lists and objects walked through."""
    if isinstance(written, dict) and isinstance(anew, dict):
        for name in sorted({*written, *anew}):
            yield from _differences(f"{place}.{name}", written.get(name), anew.get(name))
    elif isinstance(written, list) and isinstance(anew, list) and len(written) == len(anew):
        for number, (one, other) in enumerate(zip(written, anew, strict=True)):
            yield from _differences(f"{place}[{number}]", one, other)
    elif written != anew or isinstance(written, bool) != isinstance(anew, bool):
        yield f"{FILE}: {place} says {str(written)[:80]}, is {str(anew)[:80]}"
