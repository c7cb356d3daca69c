"""A word is met in every way it is written, and two words are not made one."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgate.tasks import words as module
from kbgate.tasks.tables import Rows
from kbgate.tasks.words import terms, versions_of
from kbgate.tasks.words.languages import is_known
from kbgate.tasks.words.scripts import is_special

SHARED = [
    ("zh", "怎么退货", "退货需要在七天内申请，运费由买家承担。", "退货"),
    ("zh", "积分清零", "会员积分每年年底清零。", "清零"),
    ("ja", "返品したい", "返品は七日以内に申請してください。", "返品"),
    ("ja", "ダウンロード", "領収書は注文ページからﾀﾞｳﾝﾛｰﾄﾞできます。", "ダウンロード"),
    ("th", "ใบเสร็จ", "ดาวน์โหลดใบเสร็จได้ที่หน้าคำสั่งซื้อ", "เสร็จ"),
    ("th", "น้ำดื่ม", "ดื่มน้ำวันละแปดแก้ว", "น้ำ"),
    ("lo", "ນ້ຳ", "ຂ້ອຍດື່ມນ້ຳ", "ນ້ຳ"),
    ("km", "ថ្នាំ", "ខ្ញុំញ៉ាំថ្នាំអាស្ពីរីន", "ថ្នាំ"),
    ("my", "ဆေးဝါး", "ဆေးဝါးသောက်ပါ", "ဆေးဝါး"),
    ("ko", "아스피린 매일", "아스피린은 하루에 한 번", "피린"),
    ("", "退货", "退货需要在七天内申请", "退货"),
]


@pytest.mark.parametrize(("language", "question", "text", "word"), SHARED)
def test_a_word_inside_a_text_without_blanks_is_found(language: str, question: str, text: str, word: str) -> None:
    assert word in terms(question, language)
    assert word in terms(text, language)
    assert text not in terms(text, language)


SAME = [
    ("hi", "वापसी", "वापसी"),
    ("hi", "गोलियाँ", "गोली"),
    ("ar", "يُرْجَعُ المُنْتَجُ خِلالَ سَبْعَةِ أَيّامٍ", "يرجع المنتج خلال سبعة أيام"),
    ("ar", "العــربية", "العربية"),
    ("fa", "می\u200cخواهم", "میخواهم"),
    ("he", "שָׁלוֹם", "שלום"),
    ("tr", "İADE SÜRESİ", "iade süresi"),
    ("tr", "SIPARIŞ FATURAYI", "sıparış faturayı"),
    ("", "İADE", "iade"),
    ("az", "BAKI", "bakı"),
    ("el", "ΓΙΑΤΡΟΣ", "γιατρός"),
    ("", "ΟΔΟΣ ΣΟΦΟΣ", "οδός σοφός"),
    ("de", "STRASSE", "Straße"),
    ("", "STRASSE", "straße"),
    ("", "STRAẞE", "straße"),
    ("ja", "１５日", "15日"),
    ("ar", "٥٠ مغ", "50 مغ"),
    ("", "soft\u00adware", "software"),
    ("vi", "UỐNG THUỐC", "uống thuốc"),
    ("ko", "아스피린", unicodedata.normalize("NFD", "아스피린")),
    ("my", "ဆေးဝါး", "ဆေးဝါး"),
]


@pytest.mark.parametrize(("language", "one", "other"), SAME)
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_one_word_written_in_several_ways_is_one(language: str, one: str, other: str, form: str) -> None:
    assert terms(one, language) == terms(unicodedata.normalize(form, other), language) != []
    assert terms(unicodedata.normalize(form, one), language) == terms(one, language)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [("hi", "रसीद", "नाम विषय"), ("tr", "kız", "koz"), ("th", "น้ำ", "นำ"), ("ta", "மருந்து", "மாத்திரை"), ("ko", "매일", "매주")],
)
def test_two_words_that_share_letters_are_two(language: str, one: str, other: str) -> None:
    assert not set(terms(one, language)) & set(terms(other, language))


def test_marks_stay_with_their_letter_in_every_script() -> None:
    for word in ("वापसी", "মাত্রা", "மருந்து", "x\u030cb", "𞤀𞤣𞤤𞤢𞥄𞤥"):
        assert terms(word, "") == [unicodedata.normalize("NFKC", word).lower()]


def test_particles_of_one_hiragana_are_no_words_and_marks_alone_neither() -> None:
    assert terms("私は本を読む", "ja") == ["私", "本", "読む"]
    assert terms("\u0301 \u0e31 。、๏ ၊", "th") == []


def test_pairs_of_han_letters_stand_in_where_the_dictionary_has_no_word() -> None:
    assert terms("鲧禹", "zh") == ["鲧", "禹", "鲧禹"]


PLAIN = st.text(st.sampled_from("aZzé ñß'-.,_0x9 Жй—“”€µ"), max_size=30)


@settings(max_examples=40)
@given(st.text(max_size=40), st.sampled_from(("", "en", "tr", "ja", "hi", "ar", "xx", "pt-BR")))
def test_any_text_has_words_and_they_do_not_hang_on_its_form(text: str, language: str) -> None:
    found = terms(text, language)
    assert found == terms(unicodedata.normalize("NFKC", text), language)
    assert all(word and word.isprintable() for word in found)


@given(PLAIN, st.sampled_from(("de", "en", "fr", "ru")))
def test_a_text_that_blanks_tell_apart_is_read_as_it_ever_was(text: str, language: str) -> None:
    """Indexes of the first version stand, and are known by the same fingerprint."""
    if language == "de" or "ß" not in text:
        known = module.language_of(language)
        found = module._WORD.findall(unicodedata.normalize("NFKC", text).lower())
        assert terms(text, language) == known.stemmer.stemWords([word for word in found if word not in known.stop_words])
        assert versions_of(rows(text, language)) == {}


def rows(text: str, language: str) -> Rows:
    return Rows(("a",), (text,), (language,), ({},), (("a::00",),), (("a",),))


@pytest.mark.parametrize("text", ["two words", "Größe 5 µg", "12 мг"])
def test_plain_texts_name_no_version(text: str) -> None:
    assert versions_of(rows(text, "de")) == {}


@pytest.mark.parametrize(
    ("text", "language"), [("iade", "tr"), ("वापसी", "hi"), ("İADE", ""), ("x\u030c", "en"), ("straße", "")]
)
def test_what_is_read_by_rule_names_the_rules(text: str, language: str) -> None:
    assert versions_of(rows(text, language)) == {"words": "rules 1"}


@pytest.mark.parametrize("text", ["退货", "น้ำ", "ｱｽﾋﾟﾘﾝ", "ထမင်း"])
def test_what_a_dictionary_cuts_names_its_version(text: str) -> None:
    versions = versions_of(rows(text, ""))
    assert versions["segmenter"].startswith("icu4py ")
    assert "ICU " in versions["segmenter"]


def test_a_language_is_known_by_its_first_part() -> None:
    assert all(map(is_known, ("en", "pt-BR", "ZH-Hant", "ko", "hi", "tr")))
    assert not any(map(is_known, ("vi", "sw", "english", "")))


@pytest.mark.parametrize("common", ["", "plain words ", "é ß Ж — “ "])
@pytest.mark.parametrize(
    ("character", "special"),
    [*((c, True) for c in "İıΣ\u00adά退매\u0301٥\U0001e944"), *((c, False) for c in "βµЖ😀")],
)
def test_one_character_with_a_rule_makes_a_long_text_special(common: str, character: str, special: bool) -> None:
    assert is_special(common + "β" + character + common) is special
