"""What a folder of documents gives to the exam, and what it does not: counted, named, and never by way of a link."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from kbgate.tasks.domain import KnowledgeBase
from kbgate.tasks.errors import InputError
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.folder import OF_A_RUN, Listing, told
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.runs.runfiles import OTHERS
from kbgate.tasks.settings import Kb, Suite

CLI = Callable[..., int]
SECRET = "the key under the mat"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three documents, one of them in a folder of its own."""
    for name in ("a.md", "b.txt", "sub/c.md"):
        write(tmp_path / "kb" / name, f"What {name} says")
    return tmp_path / "kb"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def load(folder: Path, *include: str, exclude: tuple[str, ...] = (), path: str = "kb") -> KnowledgeBase:
    kb = Kb(path=path, include=include or ("**",), exclude=exclude)
    return load_cards(Suite(folder=folder.parent, name="x", kb=kb))


def refused(folder: Path, *include: str, exclude: tuple[str, ...] = (), path: str = "kb") -> str:
    kb = load(folder, *include, exclude=exclude, path=path)
    assert not kb.cards
    return "\n".join(map(str, kb.problems))


def test_a_folder_without_anything_else_is_read_whole(folder: Path) -> None:
    kb = load(folder)
    assert (list(kb.cards), kb.left_out, kb.problems) == (["a", "b", "sub/c"], {}, ())


@pytest.mark.parametrize(
    "name", [".trash/old.md", ".venv/lib/pkg/LICENSE.txt", ".ipynb_checkpoints/a.md", ".kbgate/r.md", ".a.md"]
)
def test_what_is_hidden_is_no_card(name: str, folder: Path) -> None:
    write(folder / name, SECRET)
    kb = load(folder)
    assert list(kb.cards) == ["a", "b", "sub/c"]
    assert kb.left_out == {"hidden": (name if "/" not in name else f"{name.split('/')[0]}/",)}


@pytest.mark.parametrize(
    ("made", "reason", "named"),
    [
        (("node_modules/x/README.md",), "node_modules", "node_modules/"),
        (("sub/Node_Modules/x/README.md",), "node_modules", "sub/Node_Modules/"),
        (("env/pyvenv.cfg", "env/lib/LICENSE.txt"), "virtual environments", "env/"),
        (("conda/conda-meta/history", "conda/LICENSE.txt"), "virtual environments", "conda/"),
        (tuple(f"out/runs/s/1/{name}" for name in (*OF_A_RUN, "report.md")), "runs of kbgate", "out/runs/s/1/"),
    ],
)
def test_what_is_nobodys_document(made: tuple[str, ...], reason: str, named: str, folder: Path) -> None:
    for name in made:
        write(folder / name, SECRET)
    kb = load(folder)
    assert list(kb.cards) == ["a", "b", "sub/c"]
    assert kb.left_out == {reason: (named,)}


def test_a_run_is_known_by_files_that_every_run_writes() -> None:
    assert set(OF_A_RUN) <= set(OTHERS)


def test_no_link_is_followed_wherever_it_leads(folder: Path) -> None:
    outside = folder.parent / "outside"
    write(outside / "secret.md", SECRET)
    (folder / "out.md").symlink_to(outside / "secret.md")
    (folder / "in.md").symlink_to(folder / "a.md")
    (folder / "tree").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    (folder / "gone.md").symlink_to(folder / "nowhere.md")
    kb = load(folder)
    assert list(kb.cards) == ["a", "b", "sub/c"]
    assert SECRET not in str(kb.cards)
    assert kb.left_out == {"links": ("gone.md", "in.md", "loop", "out.md", "tree")}


def test_the_folder_that_a_suite_names_may_be_a_link_itself(folder: Path) -> None:
    (folder.parent / "linked").symlink_to(folder)
    assert list(load(folder, path="linked").cards) == ["a", "b", "sub/c"]


def test_a_corpus_that_is_a_link_is_told(folder: Path) -> None:
    write(folder.parent / "secret.jsonl", '{"_id": "s", "text": "x"}')
    (folder / "corpus.jsonl").symlink_to(folder.parent / "secret.jsonl")
    assert "corpus.jsonl: is a link, and no link in the folder of a knowledge base is followed" in refused(folder)


def test_other_kinds_are_counted_by_their_suffix(folder: Path) -> None:
    for name in ("d.mdx", "sub/e.MDX", "f.rst", "g.html", "LICENSE"):
        write(folder / name, "x")
    left_out = load(folder).left_out
    assert left_out == {
        ".mdx": ("d.mdx", "sub/e.MDX"),
        ".rst": ("f.rst",),
        ".html": ("g.html",),
        "without a suffix": ("LICENSE",),
    }
    assert told(left_out) == "1 .html (g.html); 2 .mdx (d.mdx, sub/e.MDX); 1 .rst (f.rst); 1 without a suffix (LICENSE)"


def test_a_suffix_in_capitals_is_the_same_suffix(folder: Path) -> None:
    write(folder / "README.MD", "Read me")
    assert "README" in load(folder).cards


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"text, and then \0 in it"])
def test_a_binary_file_is_no_card_whatever_it_is_called(content: bytes, folder: Path) -> None:
    (folder / "d.txt").write_bytes(content)
    assert load(folder).left_out == {"binary": ("d.txt",)}


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "good.md").write_text("# Good\ntext")
    (tmp_path / "docs" / "latin.md").write_bytes("# Schön\nText".encode("latin-1"))
    (tmp_path / "docs" / "yaml.md").write_text("---\ntitle: [\n---\ntext")
    (tmp_path / "docs" / "late.md").write_text("---\nvalid_from: soon\n---\ntext")
    kb = load_cards(Suite(folder=tmp_path, name="x", kb=Kb(path="docs", on_bad_card="reject")))
    assert list(kb.cards) == ["good"]
    assert sorted(problem.file for problem in kb.problems) == ["late.md", "latin.md", "yaml.md"]
    assert kb.refusals == 3
    assert sorted(kb.rejected) == ["late", "latin", "yaml"]
    assert [problem.file for problem in kb.nameless] == ["latin.md", "yaml.md"]


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_text_in_another_encoding_is_an_error_and_not_left_out(encoding: str, folder: Path) -> None:
    (folder / "d.txt").write_bytes("Grüße".encode(encoding))
    problems = "\n".join(map(str, load(folder).problems))
    assert "d.txt: is not UTF-8" in problems


def test_what_is_no_plain_file_is_not_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "s.md"))
        assert load(folder).left_out == {"not plain files": ("pipe.md", "s.md")}


@pytest.fixture
def nobody() -> object:
    """Somebody who may not read everything, where the tests are run by root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def open_to_all(folder: Path) -> None:
    shared = Path(tempfile.gettempdir())
    for place in (folder, *folder.parents):
        if place.owner() == "root" and place.is_relative_to(shared) and place != shared:
            place.chmod(0o755)


@pytest.mark.parametrize(("name", "said"), [("sub", "sub/: cannot be read: "), ("a.md", "a.md: cannot be read: ")])
def test_what_may_not_be_read_is_an_error_and_not_left_out(
    name: str, said: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    open_to_all(folder)
    (folder / name).chmod(0)
    request.getfixturevalue("nobody")
    assert said in "\n".join(map(str, load(folder).problems))


def test_a_file_that_vanishes_while_the_folder_is_read_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kbgate.tasks.inputs import readers

    listed = readers.list_folder

    def list_and_lose(root: Path, kb: Kb, suffixes: Collection[str], own: Collection[str] = ()) -> Listing:
        listing = listed(root, kb, suffixes, own)
        (folder / "b.txt").unlink()
        return listing

    monkeypatch.setattr(readers, "list_folder", list_and_lose)
    assert "b.txt: not found" in "\n".join(map(str, load(folder).problems))


@pytest.mark.parametrize(
    ("include", "exclude", "cards"),
    [
        (("**/*.md",), (), ["a", "sub/c"]),
        (("*.md",), (), ["a"]),
        (("sub/**",), (), ["sub/c"]),
        (("sub",), (), ["sub/c"]),
        (("sub/", "b.*"), (), ["b", "sub/c"]),
        (("**",), ("**/c.md",), ["a", "b"]),
        (("**",), ("sub",), ["a", "b"]),
        (("**",), ("?.txt",), ["a", "sub/c"]),
        (("**/*.md",), ("a.md",), ["sub/c"]),
    ],
)
def test_globs_choose(include: tuple[str, ...], exclude: tuple[str, ...], cards: list[str], folder: Path) -> None:
    kb = load(folder, *include, exclude=exclude)
    assert list(kb.cards) == cards
    assert sum(map(len, kb.left_out.values())) == 3 - len(cards)
    assert set(kb.left_out) == {"excluded by [kb]"}


@pytest.mark.parametrize(
    ("include", "exclude", "said"),
    [
        (("subb/**",), (), "suite.toml: kb.include.0: 'subb/**' matches no file that is read"),
        (("**/*.md", "*.rst"), (), "kb.include.1: '*.rst' matches no file that is read"),
        ((".trash/**",), (), "(hidden ones, links, node_modules and virtual environments never are)"),
        (("**",), ("drafts/**",), "kb.exclude.0: 'drafts/**' matches nothing"),
        (("**",), ("a.md", "subb"), "kb.exclude.1: 'subb' matches nothing; did you mean 'sub'?"),
        (("*.md",), ("sub/x.md",), "kb.exclude.0: 'sub/x.md' matches nothing"),
    ],
)
def test_a_glob_that_chooses_nothing_is_an_error(
    include: tuple[str, ...], exclude: tuple[str, ...], said: str, folder: Path
) -> None:
    write(folder / ".trash" / "old.md", SECRET)
    write(folder / "d.rst", "x")
    assert said in refused(folder, *include, exclude=exclude)


def test_what_is_never_read_may_be_excluded_too(folder: Path) -> None:
    write(folder / ".trash" / "old.md", SECRET)
    assert load(folder, exclude=(".trash/**",)).left_out == {"hidden": (".trash/",)}


@pytest.mark.parametrize("glob", ["", "/etc/**", "../**", "a//b", "a\\b", "./a", "a**", "docs/**.md"])
def test_a_glob_is_a_path_from_the_folder(glob: str, folder: Path) -> None:
    quoted = glob.replace("\\", "\\\\")
    (folder.parent / "suite.toml").write_text(f'name = "x"\n[kb]\npath = "kb"\nexclude = ["{quoted}"]\n')
    with pytest.raises(InputError, match=r"kb\.exclude\.0: "):
        load_suite(folder.parent)


def test_globs_are_of_folders_alone(tmp_path: Path) -> None:
    write(tmp_path / "cards.jsonl", '{"id": "a", "text": "x"}')
    kb = load_cards(Suite(folder=tmp_path, name="x", kb=Kb(exclude=("a.md",))))
    assert "kb.include and kb.exclude are of a folder of documents, and cards.jsonl is none" in str(kb.problems[0])


def test_a_suite_in_the_folder_of_its_cards_does_not_miss_its_own_files(tmp_path: Path) -> None:
    for name in ("a.md", "golden.jsonl", "baseline.json", "baseline.cases.jsonl", "calibration.json", "suite.toml", "b.toml"):
        write(tmp_path / name, "x")
    assert load_cards(Suite(folder=tmp_path, name="x", kb=Kb(path="."))).left_out == {".toml": ("b.toml",)}


def suite_of(folder: Path) -> Path:
    write(folder.parent / "golden.jsonl", '{"id": "q", "query": "What a.md says", "expected": ["a"]}\n')
    settings = 'top_k = 1\nk_values = [1]\n[kb]\npath = "kb"\n[retrieval]\nmethod = "bm25"\n'
    write(folder.parent / "suite.toml", f'name = "docs"\n{settings}')
    return folder.parent


def test_check_and_inspect_answer_alike(folder: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "d.mdx", "x")
    write(folder / ".trash" / "old.md", SECRET)
    suite = suite_of(folder)
    said = "1 .mdx (d.mdx); 1 hidden (.trash/)"
    assert kbgate("check", suite) == 0
    out = capsys.readouterr().out
    assert "docs: 3 cards, 1 cases" in out
    assert f"not read of kb: {said}" in out
    assert kbgate("inspect", suite) == 0
    assert said in capsys.readouterr().out


def test_a_label_that_names_what_is_not_read_is_told_so(folder: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    suite = suite_of(folder)
    (folder / "a.md").rename(folder / "a.mdx")
    assert kbgate("evaluate", suite) == 2
    said = capsys.readouterr().err
    assert "gold 'a' of case 'q' is no card" in said
    assert "not read of this folder: 1 .mdx (a.mdx)" in said


@pytest.mark.slow
def test_a_red_run_does_not_stay_red_by_its_own_report(
    folder: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its report speaks of the question in its own words, and stood above the card that answers it."""
    suite = suite_of(folder)
    monkeypatch.setenv("KBGATE_HOME", str(folder / "home"))
    assert kbgate("baseline", "update", suite, "--reason", "first") == 0
    (folder / "a.md").write_text("Under construction.")
    assert kbgate("evaluate", suite) == 1
    (folder / "a.md").write_text("What a.md says")
    assert kbgate("evaluate", suite) == 0
