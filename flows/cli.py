"""The command line: reads arguments, calls a flow, prints what came of it."""

from __future__ import annotations

from typing import Annotated

import typer

from kbgate.flows import cli_baseline, cli_diagnosis, cli_evidence, cli_lists, cli_moments, cli_promotion
from kbgate.flows import evaluate as evaluations
from kbgate.flows.options import EXIT_CODES, ReEmbed, SuiteFolder
from kbgate.flows.prefect import call
from kbgate.flows.terminal import complain, print_verdict, say
from kbgate.tasks.domain import Inputs
from kbgate.tasks.errors import InputError, KbgateError, Problem
from kbgate.tasks.printable import printable_json
from kbgate.tasks.secret import withheld

app = typer.Typer(
    name="kbgate",
    help=f"The exam a knowledge base sits before it is allowed into production.\n\n{EXIT_CODES}",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _options(debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False) -> None:
    pass


@app.command(epilog=EXIT_CODES)
def evaluate(
    suite: SuiteFolder,
    fast: Annotated[bool, typer.Option("--fast", help="Ask the stratified subset only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print verdict.json on standard output.")] = False,
    floor: Annotated[list[str] | None, typer.Option(metavar="METRIC=VALUE", help="A critical floor; repeatable.")] = None,
    now: Annotated[bool, typer.Option("--now", help="Judge validity now, whatever day as_of pins.")] = False,
    re_embed: ReEmbed = False,
) -> int:
    """Evaluate a knowledge base against its baseline and print the verdict."""
    floors = _floors(floor or [])
    given = {"suite": str(suite), "fast": fast, "floors": floors, "at_now": now, "re_embed": re_embed}
    evaluation = call(evaluations, evaluations.run, **given)
    if as_json:
        say(printable_json((evaluation.folder / "verdict.json").read_text(encoding="utf-8")), end="")
    print_verdict(evaluation)
    return evaluation.exit_code


def _floors(texts: list[str]) -> dict[str, float]:
    floors: dict[str, float] = {}
    problems = []
    for text in texts:
        name, _, value = text.partition("=")
        if name in floors:
            problems.append(Problem("--floor", 0, f"'{name}' is given twice; give the floor that holds"))
        try:
            floors[name] = float(value)
        except ValueError:
            problems.append(Problem("--floor", 0, f"needs METRIC=NUMBER, found '{text}'"))
    if problems:
        raise InputError(problems)
    return floors


@app.command(epilog=EXIT_CODES)
def check(suite: SuiteFolder) -> int:
    """Check settings, cards, cases and baseline, without asking anything: every mistake at once, with file and line."""
    from kbgate.tasks import exam, stages
    from kbgate.tasks.comparison.power import rules_that_never_pass, smallness
    from kbgate.tasks.errors import counted, told_once
    from kbgate.tasks.gate.rejections import rejections
    from kbgate.tasks.gate.rules import unseen_sentence
    from kbgate.tasks.inputs.folder import told
    from kbgate.tasks.retrieval.lexical import unknown_languages
    from kbgate.tasks.rules import unseen_cases
    from kbgate.tasks.settings import FILE

    inputs = exam.check(stages.load_suite(suite))
    golden, kb = inputs.golden, inputs.kb
    unasked = f", {golden.unjudged} questions without judgment left out" if golden.unjudged else ""
    cards, cases = len(kb.cards), len(golden.cases)
    never = list(rules_that_never_pass(inputs.suite, golden.cases))
    mistakes = [*([f"{counted(kb.refusals, 'card')} rejected"] if kb.problems else [])]
    mistakes += [f"{counted(len(never), 'line')} of [gates] that can never pass"] if never else []
    verdict = " and ".join(mistakes) or "nothing to mend"
    say(f"{inputs.suite.name}: {cards} cards, {cases} cases{unasked}; {verdict}")
    told_anyway = filter(None, [smallness(golden.cases), unknown_languages(inputs.suite, kb, golden)])
    for sentence in [*(f"{FILE}: {sentence}" for sentence in never), *told_anyway]:
        say(sentence)
    for problem in told_once(kb.problems):
        say(f"rejected: {problem}")
    for reason in rejections(kb, golden.cases, inputs.baseline, inputs.suite.kb.rejected_share):
        say(f"{reason.level}: {reason.sentence}")
    if unasked := _unasked(inputs):
        say(unasked)
    if unseen := unseen_cases(golden.cases, kb, inputs.suite.kb):
        say(unseen_sentence(unseen))
    if kb.left_out:
        say(f"not read of {inputs.suite.kb.path}: {told(kb.left_out)}")
    return 0


def _unasked(inputs: Inputs) -> str:
    """Which questions the model does not read to their end, or that this was not counted; "" where it reads all."""
    from kbgate.tasks import stages
    from kbgate.tasks.diagnosis.truncation import questions_cut
    from kbgate.tasks.retrieval import needs_vectors

    if not needs_vectors(inputs.suite):
        return ""
    try:
        cut, sentence = questions_cut(inputs.suite, stages.identify_model(inputs.suite), inputs.golden.cases)
    except InputError as error:
        return f"questions longer than the model reads were not counted: {error.problems[0]}"
    return sentence if cut or "not counted" in sentence else ""


cli_lists.add_to(app)
cli_diagnosis.add_to(app)
cli_evidence.add_to(app)
cli_moments.add_to(app)
cli_promotion.add_to(app)
app.add_typer(cli_baseline.app, name="baseline")


def command_line(arguments: list[str]) -> int:
    """Run one command and return its exit code; input errors are sentences, one a line."""
    command = typer.main.get_command(app)
    try:
        with withheld():
            code = command.main(args=[a for a in arguments if a != "--debug"], prog_name="kbgate", standalone_mode=False)
        if code is not None and code not in range(5):
            # click turns Ctrl-C into a code of its own, and no code above 4 has a meaning here.
            raise KbgateError("interrupted")
    except KbgateError as error:
        if "--debug" in arguments:
            raise
        return complain(error)
    except Exception as error:
        show_usage = getattr(error, "show", None)
        if show_usage is None:
            raise
        show_usage()  # click's own usage errors
        return 2
    return code or 0
