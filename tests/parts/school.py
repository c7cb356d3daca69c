"""A small suite of twelve cards and eight cases in a git repository, and the walk of a part through everything kbgate does."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbgate.tasks.gate.policy import policy_fingerprint
from kbgate.tasks.inputs.suite import load_suite
from tests.conftest import last_report, last_verdict, run_named, write_lines

CLI = Callable[..., int]

CARDS = {
    "bread": ("Baking bread", "Knead flour, water, salt and yeast, and let the dough rise before the oven."),
    "roses": ("Pruning roses", "Cut the canes in late winter, above a bud that looks outwards."),
    "bicycle": ("Mending a bicycle tyre", "Find the puncture under water and glue a patch on it."),
    "chess": ("Opening a game of chess", "Bring knights out early and castle before the attack."),
    "bees": ("Keeping bees", "A colony needs honey for the cold months, so leave enough in the hive."),
    "violin": ("Tuning a violin", "Turn the pegs gently until the fifths are pure."),
    "tent": ("Pitching a tent", "Choose flat ground, drive the pegs in at an angle and tighten the guy lines."),
    "soup": ("Cooking tomato soup", "Roast the tomatoes with garlic and blend them with stock."),
    "snow": ("Clearing snow", "Shovel often and little, and strew sand where it freezes."),
    "kite": ("Flying a kite", "Stand with the wind at your back and let the line out slowly."),
    "ink": ("Removing ink stains", "Dab the cloth with milk before it dries."),
    "map": ("Reading a map", "Turn it until north on paper is north outside."),
}
QUESTIONS = {
    "bread": "what goes into bread before baking",
    "roses": "when is pruning of roses due",
    "bicycle": "how do I set about mending a bicycle tyre",
    "chess": "what is good when opening a chess game",
    "bees": "what should I mind when keeping bees",
    "violin": "how is tuning a violin done",
    "tent": "where is pitching a tent best",
    "soup": "how does cooking tomato soup work",
}
GATES = {
    "contract": "{tolerance = 0.02}",
    "newly_failing": "{ceiling = 0, slack = 0}",
    "unbaselined_failing": '{ceiling = 0, level = "supporting"}',
}
FOREIGN = ("Quarterly tax deadlines", "Returns are due on the last day of April.")
"""What a card says that is no longer about its subject."""
Cards = dict[str, tuple[str, str]]
"""Title and text by id."""


def save_lines(folder: Path, cards: Cards) -> None:
    """The cards as cards.jsonl."""
    write_lines(folder / "cards.jsonl", [{"id": n, "title": title, "text": text} for n, (title, text) in cards.items()])


@dataclass(slots=True)
class School:
    """The suite, its repository, and what the command line said of it."""

    root: Path
    name: str
    kbgate: CLI
    home: Path
    method: str = "bm25"
    chunker: str = "whole"
    kb: str = "cards.jsonl"
    save: Callable[[Path, Cards], None] = save_lines
    gates: dict[str, str] = field(default_factory=lambda: dict(GATES))
    tables: str = ""
    """More of suite.toml."""
    cards: Cards = field(default_factory=lambda: dict(CARDS))

    @property
    def folder(self) -> Path:
        return self.root / "suites" / self.name

    # ------------------------------------------------------------ files

    def write(self) -> None:
        """The suite's files as they are now; what was accepted stays."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.save(self.folder, self.cards)
        cases = [{"id": n, "query": q, "language": "en", "must_cite_one_of": [n]} for n, q in QUESTIONS.items()]
        write_lines(self.folder / "golden.jsonl", cases)
        lines = [
            f'name = "{self.name}"\ntop_k = 3\nk_values = [1, 3]\nfast = 4\nas_of = 2026-06-01',
            f'[kb]\npath = "{self.kb}"',
            f'[chunking]\nmethod = "{self.chunker}"',
            f'[retrieval]\nmethod = "{self.method}"',
            '[production]\npath = "../../serving"',
            "[gates]",
            *(f"{name} = {limits}" for name, limits in self.gates.items()),
            self.tables,
        ]
        (self.folder / "suite.toml").write_text("\n".join(lines))

    def change(self, message: str, **cards: tuple[str, str]) -> None:
        """Cards that come in or say something else, as a commit."""
        self.cards |= cards
        self.write()
        self.commit(message)

    def git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=self.root, check=True, capture_output=True)

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    # ------------------------------------------------------------ commands

    def run(self, command: str, *arguments: object) -> int:
        return self.kbgate(command, self.folder, *arguments)

    def pull_request(self) -> int:
        with contextlib.chdir(self.root):
            return self.run("pull-request", "--baseline-ref", "main")

    @property
    def verdict(self) -> dict[str, Any]:
        """verdict.json of the newest run."""
        return last_verdict(self.home, self.name)

    @property
    def report(self) -> str:
        return last_report(self.home, self.name)

    @property
    def newest(self) -> Path:
        """The folder of the newest run."""
        return run_named(self.home, str(self.verdict["run"]), self.name)

    @property
    def policy(self) -> str:
        return policy_fingerprint(load_suite(self.folder))

    def figures(self, metric: str) -> list[dict[str, Any]]:
        """The rows of a figure over all cases, as verdict.json has them."""
        return [row for row in self.verdict["figures"] if row["metric"] == metric and not row["slice"]]

    def accept(self) -> None:
        """The suite as it stands is the main branch's, with its baseline; a change is checked out."""
        self.write()
        self.git("init", "-q", "-b", "main")
        assert self.kbgate("baseline", "update", self.folder, "--reason", "first") == 0
        self.commit("accepted")
        self.git("checkout", "-q", "-b", "change")

    def walk(self) -> None:
        """Accepted, changed for the better, judged as a change, verified, explained, promoted; then changed for the worse."""
        self.accept()
        self.change("a card more", rye=("Sourdough of rye", "Feed the starter for a week."))
        assert self.pull_request() == 0, self.verdict["reasons"]
        assert self.run("evaluate") == 0, self.verdict["reasons"]
        assert self.kbgate("verify", self.newest) == 0
        assert self.run("explain", "bread") == 0
        assert self.run("promote") == 0, self.verdict["reasons"]
        assert self.run("status") == 0
        self.fall()

    def fall(self) -> None:
        """A gold says something else: the change is blocked, its diagnosis is made, and production stays as it is."""
        self.change("worse", violin=FOREIGN)
        assert self.pull_request() == 1
        verdict = self.verdict
        assert verdict["newly_failing"] == ["violin"]
        assert verdict["diagnosis"]["trouble"] == ""
        assert [finding["gold"] for finding in verdict["diagnosis"]["findings"]] == ["violin"]
        assert self.kbgate("verify", self.newest) == 0
        assert self.run("explain", "violin") == 0
        assert self.run("promote") == 1
