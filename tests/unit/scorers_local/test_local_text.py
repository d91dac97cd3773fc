"""Reading text: sentences, quantities, names, denials, languages, and odd input."""

from __future__ import annotations

import time

import pytest

from scorers.text import (
    Quantity,
    canonical_number,
    clean,
    grams,
    kind,
    language,
    names,
    negations,
    quantities,
    scripts,
    sentences,
    stem,
    words,
)

SENTENCES = {
    "en": ["Dr. Smith paid $3.5 million on Jan. 5.", "He was 42!", "Was it a joke, e.g. by the U.S. office?"],
    "ko": ["출장비는 하루 5만원입니다.", "신청은 3.5일 안에 하세요!", "언제까지인가요?"],
    "ja": ["私は学生です。", "彼は「行く。」と言った。", "本当ですか？"],
    "zh": ["他来了。", "你好吗？", "价格是3.5元。"],
    "de": ["Am 3. Mai kam Dr. Müller.", "Es kostete z.B. 3,5 Mio. Euro.", "Gut!"],
    "fr": ["M. Dupont est venu.", "Il a payé 3,5 €.", "Vraiment ?"],
    "es": ["El Sr. López vino.", "¿Cuánto pagó?", "¡Mucho!"],
    "ar": ["جاء الرجل.", "هل دفع؟", "نعم، دفع كثيرا."],
    "hi": ["वह आया।", "क्या उसने भुगतान किया?", "हाँ।"],
    "ru": ["Он приехал в Москву.", "Сколько он заплатил?", "Очень много!"],
}


@pytest.mark.parametrize("tag", SENTENCES)
def test_sentences_of_ten_languages(tag: str) -> None:
    joiner = "" if tag in ("ja", "zh") else " "
    text = joiner.join(SENTENCES[tag])
    assert sentences(text, tag) == SENTENCES[tag]
    assert sentences(text) == SENTENCES[tag]


def test_a_line_break_ends_a_sentence_and_a_limit_holds() -> None:
    assert sentences("one\ntwo\n\n- three. Four") == ["one", "two", "- three.", "Four"]
    assert sentences("One cat. Two dogs. A bird.", limit=2) == ["One cat.", "Two dogs."]
    assert sentences("") == [] == sentences(" \n ")


def test_initials_do_not_end_a_sentence() -> None:
    assert sentences("J. K. Rowling wrote it. It sold.") == ["J. K. Rowling wrote it.", "It sold."]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$3.5 million", ("3500000", "usd")),
        ("about 20% of it", ("20", "%")),
        ("20 percent", ("20", "%")),
        ("1,200 km", ("1200", "km")),
        ("25 minutes", ("25", "min")),
        ("twenty-five days", ("25", "d")),
        ("twelve people", ("12", "people")),
        ("the 1990s", ("1990", "")),
        ("1.000 Euro", ("1000", "eur")),
        ("3,5 %", ("3.5", "%")),
        ("하루 5만원까지", ("50000", "krw")),
        ("3일 이내", ("3", "d")),
        ("价格是3.5万元", ("35000", "cny")),
        ("On 5 March", ("5", "m03")),
        ("Jan 5", ("5", "m01")),
        ("2024-03-05", ("5", "m03")),
        ("3월 5일", ("5", "m03")),
        ("1 234 567 km", ("1234567", "km")),
    ],
)
def test_quantities(text: str, wanted: tuple[str, str]) -> None:
    assert wanted in {(found.value, found.unit) for found in quantities(clean(text))}


def test_neighbouring_numbers_stay_apart_and_pronoun_one_is_none() -> None:
    assert [q.value for q in quantities("in 2020 300 people")] == ["2020", "300"]
    assert quantities("one of them") == []
    assert quantities("no number here") == []
    assert Quantity("5", "km", "5 km") in quantities("5 km")


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("1,200.50", "1200.5"),
        ("007", "7"),
        ("0.500", "0.5"),
        ("3,5", "3.5"),
        ("1'000'000", "1000000"),
        ("12", "12"),
    ],
)
def test_canonical_numbers(written: str, canonical: str) -> None:
    assert canonical_number(written) == canonical


def test_names_are_capitals_that_grammar_does_not_ask_for() -> None:
    assert names(words("Yesterday we met Maria Lopez of the iPhone team in Berlin")) == [
        "Maria",
        "Lopez",
        "iPhone",
        "Berlin",
    ]
    assert names(words("Maria Lopez came")) == ["Maria", "Lopez"]
    assert names(words("The weather is fine")) == []
    assert names(words("READ THIS NOW PLEASE")) == []
    assert names([]) == []


@pytest.mark.parametrize(
    "text",
    [
        "It is not allowed",
        "It isn't allowed",
        "No refund",
        "환불되지 않습니다",
        "환불할 수 없습니다",
        "返金できません",
        "不能退款",
        "Das ist nicht erlaubt",
        "Ce n'est pas permis",
        "Это не разрешено",
    ],
)
def test_denials_are_seen(text: str) -> None:
    assert negations(text, map(kind, words(text))) % 2 == 1


@pytest.mark.parametrize("text", ["It is allowed", "환불됩니다", "返金できます", "可以退款", "Das ist erlaubt"])
def test_statements_are_not_denials(text: str) -> None:
    assert negations(text, map(kind, words(text))) == 0


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("The cat is on the table and it sleeps", "en"),
        ("Der Hund ist auf dem Tisch und schläft nicht", "de"),
        ("Le chat est sur la table et il dort", "fr"),
        ("El gato está en la mesa y no se mueve", "es"),
        ("고양이가 탁자 위에 있습니다", "ko"),
        ("猫はテーブルの上にいます", "ja"),
        ("猫在桌子上", "zh"),
        ("Кошка лежит на столе", "ru"),
        ("القط على الطاولة", "ar"),
        ("बिल्ली मेज पर है", "hi"),
        ("42", None),
        ("Xyzzy plugh", None),
    ],
)
def test_language(text: str, tag: str | None) -> None:
    assert language(text) == tag


def test_stems_map_forms_together() -> None:
    assert stem("warranties") == stem("warranty")
    assert stem("returned") == stem("returns") == stem("returning") == stem("return")
    assert stem("stopped") == stem("stop")
    assert grams("가나다") == ["가나", "나다"] and grams("가") == ["가"]


def test_clean_removes_what_hides_text() -> None:
    assert clean("a\u202eb\u200bc\x07d") == "abc d"
    assert clean("\ud800x") == "\ufffdx"
    assert clean("ﬁve") == "five"
    assert scripts("abc 가나다") == {"latin": 3, "hangul": 3}


HOSTILE = {
    "no spaces": "a" * 300_000,
    "hangul without spaces": "가" * 300_000,
    "quotes": 'He said "yes. (No "maybe. ' * 12_000,
    "numbers": "12,345 " * 112_000,
    "dates": "May 5 " * 48_000,
    "points": "1.1.1.1" * 112_000,
    "surrogates": "\ud800\u202e" * 150_000,
    "lines": "\n" * 300_000,
    "abbreviations": "e.g. " * 60_000,
    "brackets": "[" * 150_000 + "]" * 150_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_time_in_proportion(name: str) -> None:
    """Ten times the text may take at most sixty times as long: bounded by its length, far from its square. The least of
    two, since a collection of the whole session's garbage may fall into one."""

    def seconds(text: str) -> float:
        started = time.process_time()
        cleaned = clean(text)
        found = sentences(cleaned)
        quantities(cleaned)
        names(words(cleaned))
        language(cleaned)
        spent = time.process_time() - started
        assert all(found)
        return spent

    small, large = HOSTILE[name][: len(HOSTILE[name]) // 10], HOSTILE[name]
    assert min(seconds(large) for _ in range(2)) <= 60 * max(seconds(small), 0.005)
