"""Cases held against cards: unknown golds, excerpts that are not there, rules on unknown fields and rules no card satisfies."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kbgate.tasks.comparison.wordings import missing_gold
from kbgate.tasks.domain import Baseline, Case, GoldenSet, KnowledgeBase, Vanished
from kbgate.tasks.errors import InputError, Problem, did_you_mean
from kbgate.tasks.inputs.folder import told
from kbgate.tasks.predicates import BUILT_IN_FIELDS, mistakes
from kbgate.tasks.rules import rules_of, unmet_rules
from kbgate.tasks.settings import FILE, Suite


def check_inputs(
    suite: Suite, kb: KnowledgeBase, golden: GoldenSet, baseline: Baseline | None, strict: bool = False
) -> tuple[Vanished, ...]:
    """Hold cases against cards; raises `InputError` with every mistake of cards and cases.

    Gold the baseline's manifest knows, and the knowledge base has lost since, is returned: the run goes on and will block.
    With `strict`, as in `kbgate check`, it is a mistake too.
    """
    accepted = baseline.cards if baseline else {}
    changed = {name for name, row in accepted.items() if name not in kb.cards or kb.cards[name].hash != row.hash}
    known_cases = baseline.cases if baseline else {}
    rejected = kb.problems if suite.kb.on_bad_card == "refuse" else ()
    problems, vanished = [*rejected, *golden.problems], []
    fields = [*BUILT_IN_FIELDS, *suite.kb.filterable]
    # Cards that were not read cannot be told from cards that are not there: their own problem is the one to mend first.
    if not kb.cards:
        raise InputError([*kb.problems, *golden.problems])
    for case in golden.cases.values():
        sentences = list(_predicate_mistakes(case, fields))
        for lost, sentence in missing_gold(case, kb.cards):
            # A case the baseline does not know was labelled since: what it misses was never there.
            if not lost.excerpt and (refusal := kb.refusal(lost.card)):
                sentence = f"gold '{lost.card}' of case '{case.id}' was rejected at {refusal}"
            if lost.card in changed and (case.id in known_cases or not lost.excerpt) and not strict:
                vanished.append(lost)
            else:
                sentences.append(sentence)
        problems += [Problem(case.file, case.line, sentence) for sentence in sentences]
    problems += _unmet_rules(suite, kb, golden, baseline, strict)
    known = {*golden.cases, *known_cases}
    problems += [
        Problem(FILE, 0, f"allow.{number}.case: unknown case '{allow.case}'; {did_you_mean(allow.case, known)}")
        for number, allow in enumerate(suite.allowances)
        if allow.case not in known
    ]
    if problems:
        if kb.left_out:  # among them may be what a label names
            problems.append(Problem(suite.kb.path, 0, f"not read of this folder: {told(kb.left_out)}"))
        raise InputError(problems)
    return tuple(vanished)


def _predicate_mistakes(case: Case, fields: Collection[str]) -> Iterator[str]:
    for name, written in rules_of(case):
        for sentence in mistakes(written, fields, access=name == "entitled"):
            yield f"{name}: {sentence}"


def _unmet_rules(
    suite: Suite, kb: KnowledgeBase, golden: GoldenSet, baseline: Baseline | None, strict: bool
) -> Iterator[Problem]:
    """Rules that no card satisfies or no gold can; where cards of the baseline did, the run goes on, unless strict."""
    # A key that is not filterable yet is told as that, and what else is wrong with a rule on it in the same breath.
    keys = {key for card in kb.cards.values() for key in card.metadata} | {*suite.kb.filterable}
    sound = {name: case for name, case in golden.cases.items() if not any(_predicate_mistakes(case, [*BUILT_IN_FIELDS, *keys]))}
    for unmet in unmet_rules(sound, kb, suite.kb.model_copy(update={"filterable": tuple(sorted(keys))}), baseline):
        if strict or not unmet.change:
            case = unmet.case
            before = f"; in the baseline a card did: {unmet.change}" if unmet.change else ""
            found = f"{unmet.written} in case '{case.id}'"
            yield Problem(case.file, case.line, f"{unmet.rule}: {unmet.sentence}{before}", found)
