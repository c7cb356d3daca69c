"""Where words begin and end in a script, and which of its letters are one letter written in several ways.

Letters, digits and the marks on them make a word, as Unicode's categories say. Scripts that put no blanks between words are
cut by ICU's dictionaries (Chinese, Japanese, Thai, Lao, Khmer, Burmese); those ICU has no dictionary for, and Korean, whose
particles stick to its nouns, into pairs of neighbouring letters. Source: Unicode Standard Annex 29; for the pairs, the
analysers of Chinese, Japanese and Korean that search engines share.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

_EAST = "\u3005-\u3007\u3040-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
"""Han, kana, Bopomofo."""
_FAR = "\uf900-\ufaff\U00020000-\U000323af"
"""Han of later blocks."""
_CUT = f"{_EAST}{_FAR}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
"""What ICU has dictionaries for: these, Thai and Lao, Burmese, Khmer."""
_PAIRED = (
    "\u1100-\u11ff\uac00-\ud7ff\ua960-\ua97f\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\ua000-\ua4cf\ua980-\ua9df\uaa80-\uaadf"
)
"""Hangul; Tai Le, New Tai Lue, Tai Tham, Balinese, Yi, Javanese, Tai Viet."""
_DROPPED = "\u00ad\u034f\u0640\u200c\u200d\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
"""Hyphens and joiners nobody sees, the stroke that lengthens Arabic words, variants of a glyph."""
_VOWELS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
)
"""Points of Hebrew and Arabic: most writers leave them out, and the word is the same."""
_BEYOND = re.compile("[^\0-\u00ac\u00ae-\u012f\u0132-\u02ff\u0400-\u0482\u048a-\u052f\u1e00-\u1eff\u2010-\u2027\u2030-\u205e]")
"""Not Latin, Cyrillic or punctuation. Most texts have none of it, and are told at once."""
_CUT_LETTER = re.compile(f"[{_CUT}]")
_HAN = re.compile(f"[{_EAST}{_FAR}](?<![\u3040-\u30ff])")
_PARTICLE = re.compile("[\u3041-\u3096]")
_ASSIGNED = [*range(0x20000), *range(0xE0000, 0xE0200)]
"""Where Unicode has marks and digits; what lies between is Han, or not assigned."""
_AM = re.compile("(\u0e4d)([\u0e48-\u0e4b]?)\u0e32")


class _Classes:
    """Expressions that need Unicode's tables: made when a text first is not plain."""

    @cached_property
    def _marks(self) -> str:
        """Every mark, as a class's inside."""
        return _inside([c for c in _ASSIGNED if unicodedata.category(chr(c))[0] == "M"])

    @cached_property
    def folded(self) -> dict[int, str | None]:
        """Letters by what they are compared as: digits of every script, Greek without accents, no points."""
        table: dict[int, str | None] = {ord(c): None for c in _members(_DROPPED + _VOWELS)}
        table |= {c: str(unicodedata.decimal(chr(c))) for c in _ASSIGNED[128:] if chr(c).isdecimal()}
        bases = {ord(c): unicodedata.normalize("NFD", c)[0] for c in _members("\u0370-\u03ff\u1f00-\u1fff")}
        return table | {c: base for c, base in bases.items() if ord(base) != c and base.isalpha()} | {ord("ς"): "σ"}

    @cached_property
    def special(self) -> re.Pattern[str]:
        """What makes a text more than letters, digits and blanks: it is read by the rules of its script."""
        return re.compile(f"[{self._marks}{_inside(sorted(self.folded))}{_CUT}{_PAIRED}İıΣ]")

    @cached_property
    def runs(self) -> re.Pattern[str]:
        """Runs of letters that are read alike, each with its marks."""
        marks, other = self._marks, rf"[^\W{_CUT}{_PAIRED}]"
        return re.compile(
            f"(?P<cut>[{_CUT}][{_CUT}{marks}]*)|(?P<paired>[{_PAIRED}][{_PAIRED}{marks}]*)|{other}(?:{other}|[{marks}])*"
        )

    @cached_property
    def letter(self) -> re.Pattern[str]:
        """One letter with its marks."""
        return re.compile(rf"\w[{self._marks}]*")


_CLASSES = _Classes()


def _inside(points: Sequence[int]) -> str:
    """Code points in rising order as the inside of a class, neighbours as a range."""
    starts = [point for before, point in zip([-2, *points], points, strict=False) if point != before + 1]
    ends = [point for point, after in zip(points, [*points[1:], -2], strict=True) if after != point + 1]
    return "".join(f"{re.escape(chr(start))}-{re.escape(chr(end))}" for start, end in zip(starts, ends, strict=True))


def _members(inside: str) -> list[str]:
    """The characters of a class made of ranges and single characters."""
    parts = re.findall("(.)(?:-(.))?", inside, re.DOTALL)
    return [chr(point) for start, end in parts for point in range(ord(start), ord(end or start) + 1)]


def is_special(text: str) -> bool:
    """Whether a text in form NFKC holds anything that its script has a rule for."""
    # The second expression is slow over a long text; it is asked about the few characters the first leaves.
    return any(_CLASSES.special.match(character) for character in _BEYOND.findall(text))


def folded(text: str) -> str:
    """A lower-case text in form NFKC with the letters alone that words differ by."""
    # NFKC takes Thai's and Lao's AM apart, and ICU's dictionaries spell it as one.
    text = _AM.sub("\\2\u0e33", text).replace("\u0ecd\u0eb2", "\u0eb3")
    return text.replace("i\u0307", "i").translate(_CLASSES.folded)


def words(text: str) -> list[str]:
    """The words of a folded text, in order."""
    runs = [(run.lastgroup, run.group()) for run in _CLASSES.runs.finditer(text)]
    cut = _cut([run for kind, run in runs if kind == "cut"])
    found: list[str] = []
    for kind, run in runs:
        if kind == "cut":
            found += _joined(next(cut))
        elif kind == "paired":
            found += _paired(run)
        else:
            found.append(run)
    return found


def is_cut(text: str) -> bool:
    """Whether a text in form NFKC holds letters that ICU's dictionaries are asked about."""
    return _CUT_LETTER.search(text) is not None


def segmenter() -> str:
    """What cuts scripts without blanks, and in which version: its dictionaries change with it."""
    from importlib.metadata import version

    from icu4py import icu_version

    return f"icu4py {version('icu4py')}, ICU {icu_version}"


def _cut(runs: Sequence[str]) -> Iterator[list[str]]:
    """Each run's words. One breaker reads them all, a line each: to make one costs more than to ask it."""
    from icu4py.breakers import WordBreaker

    pieces: list[str] = []
    for piece in WordBreaker("\n".join(runs), "und"):
        if piece == "\n":
            yield pieces
            pieces = []
        elif any(map(str.isalnum, piece)):
            pieces.append(piece)
    yield pieces


def _joined(pieces: Iterable[str]) -> Iterator[str]:
    """The words of a run, and the pairs of single Han letters that stand side by side, for which there was no word.

    A single letter of hiragana is a particle or an ending, and no word.
    """
    before = ""
    for piece in pieces:
        single = _HAN.fullmatch(piece) is not None
        if not _PARTICLE.fullmatch(piece):
            yield piece
        if single and before:
            yield before + piece
        before = piece if single else ""


def _paired(run: str) -> list[str]:
    """A run, and where it is longer than a pair, its pairs."""
    letters = _CLASSES.letter.findall(run)
    pairs = [one + other for one, other in pairwise(letters)]
    return ["".join(letters), *(pairs if len(letters) > 2 else [])]
