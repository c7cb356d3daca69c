"""The words of a text: the one place for what BM25, its diagnosis and its figures count."""

from __future__ import annotations

import re
import unicodedata

from kbgate.tasks.tables import Rows
from kbgate.tasks.words.languages import Language, language_of
from kbgate.tasks.words.scripts import folded, is_cut, is_special, segmenter, words

VERSION = 1
"""Part of the index fingerprint: raised whenever the same text would give other terms."""
_RULES = 1
"""Part of it where a text is read by the rules of its language or script."""

_WORD = re.compile(r"\w+")


def terms(text: str, language: str) -> list[str]:
    """The stemmed words of a text that carry meaning, in order; numbers and one-letter words stay."""
    known = language_of(language)
    found, plain = _read(text, known)
    stemmed: list[str] = known.stemmer.stemWords([word for word in found if word not in known.stop_words])
    # Whoever types Turkish without its letters, or a foreign name in capitals, is met too; its stemmer needed them.
    return stemmed if plain else [word.replace("ı", "i") for word in stemmed]


def all_words(text: str, language: str) -> list[str]:
    """Every word of a text, in order, as it is read and not stemmed."""
    return _read(text, language_of(language))[0]


def versions_of(rows: Rows) -> dict[str, str]:
    """What the words of these rows were found by, beyond `VERSION`: rules and dictionaries, where a row needs them."""
    versions = {}
    for text, language in zip(map(_composed, rows.texts), rows.languages, strict=True):
        if not _is_plain(text, language_of(language)):
            versions["words"] = f"rules {_RULES}"
            if is_cut(text):
                return {**versions, "segmenter": segmenter()}
    return versions


def _read(text: str, language: Language) -> tuple[list[str], bool]:
    """The words of a text, and whether blanks alone told them."""
    text = _composed(text)
    plain = _is_plain(text, language)
    return (_WORD.findall(text.lower()) if plain else words(folded(language.lowered(text)))), plain


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _is_plain(text: str, language: Language) -> bool:
    """Whether blanks alone tell the words of a text, as they do in most."""
    if language.by_rule or text.isascii():
        return not language.by_rule
    return not is_special(text) and (language.sharp_s or not ("ß" in text or "ẞ" in text))
