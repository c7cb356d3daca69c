"""What a language brings to its words: a stemmer, words without meaning, rules of casing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from Stemmer import Stemmer

_ENGLISH = ("english", "STOPWORDS_EN_PLUS")
_LANGUAGES = {
    "da": ("danish", "STOPWORDS_DANISH"),
    "de": ("german", "STOPWORDS_GERMAN"),
    "en": _ENGLISH,
    "es": ("spanish", "STOPWORDS_SPANISH"),
    "fr": ("french", "STOPWORDS_FRENCH"),
    "it": ("italian", "STOPWORDS_ITALIAN"),
    "nl": ("dutch", "STOPWORDS_DUTCH"),
    "no": ("norwegian", "STOPWORDS_NORWEGIAN"),
    "pt": ("portuguese", "STOPWORDS_PORTUGUESE"),
    "ru": ("russian", "STOPWORDS_RUSSIAN"),
    "sv": ("swedish", "STOPWORDS_SWEDISH"),
}
"""Snowball's name of a language and its list of stop words; one that is not known, or not said, is analysed as English."""
_BY_RULE = {
    "ar": ("arabic", ""),
    "az": ("turkish", ""),
    "ca": ("catalan", ""),
    "cs": ("czech", ""),
    "el": ("greek", ""),
    "et": ("estonian", ""),
    "eu": ("basque", ""),
    "fa": ("persian", ""),
    "fi": ("finnish", ""),
    "ga": ("irish", ""),
    "hi": ("hindi", ""),
    "hu": ("hungarian", ""),
    "hy": ("armenian", ""),
    "id": ("indonesian", ""),
    "lt": ("lithuanian", ""),
    "nb": ("norwegian", "STOPWORDS_NORWEGIAN"),
    "ne": ("nepali", ""),
    "pl": ("polish", ""),
    "ro": ("romanian", ""),
    "ta": ("tamil", ""),
    "tr": ("turkish", "STOPWORDS_TURKISH"),
    "yi": ("yiddish", ""),
}
"""Likewise; what they make of a text is not what an index that was built before them made of it."""
_CUT = {"ja", "km", "ko", "lo", "my", "th", "yue", "zh"}
"""Languages whose words are found by a dictionary or in pairs."""
_DOTTED = {"az", "tr"}


@dataclass(frozen=True, slots=True)
class Language:
    """How the words of a language are read."""

    stemmer: Stemmer
    stop_words: frozenset[str]
    by_rule: bool
    """Whether any text of it is: blanks and Snowball's English are not enough."""
    dotted: bool
    """Whether i and ı are two letters."""
    sharp_s: bool
    """Whether its stemmer knows that ß is ss."""

    def lowered(self, text: str) -> str:
        """A text in lower case, as the language has it."""
        if self.dotted:
            text = text.replace("İ", "i").replace("I", "ı")
        return text.lower().replace("ß", "ss")


@cache
def language_of(tag: str) -> Language:
    """The language of a tag, whatever its region; English for one that is not known."""
    import bm25s.stopwords
    from Stemmer import Stemmer

    name = _primary(tag)
    stemmer, stop_words = (_LANGUAGES | _BY_RULE).get(name, _ENGLISH)
    meaningless = getattr(bm25s.stopwords, stop_words) if stop_words else ()
    return Language(Stemmer(stemmer), frozenset(meaningless), name in _BY_RULE, name in _DOTTED, name == "de")


def is_known(tag: str) -> bool:
    """Whether the words of a language are its own; those of any other are read as English."""
    return any(_primary(tag) in known for known in (_LANGUAGES, _BY_RULE, _CUT))


def _primary(tag: str) -> str:
    return tag.partition("-")[0].lower()
