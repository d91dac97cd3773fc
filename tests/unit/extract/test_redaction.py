"""What is replaced before anything is scored, stored or sent, and what is left alone."""

from __future__ import annotations

import time
from dataclasses import fields, replace

import pytest
from pydantic import ValidationError

from collector.extract.redaction import Redactor, pseudonym
from collector.extract.redaction_detect import Detector
from collector.extract.redaction_options import Ids, Personal, RedactionOptions, UserPattern
from collector.records.found import Found, TokenUsage
from scorers.interaction import Damage, Field, Interaction, Passage, Turn
from scorers.local import build
from scorers.outcome import Score
from scorers.run import run_local
from scorers.scorer import Tier

DETECTOR = Detector(tuple(Personal), ())

KEY = "MIIEpAIBAAKCAQEA0123456789abcdef"
PERSONAL = {
    "EMAIL": [
        "jane.doe@example.com",
        "JANE+news@mail.example.co.uk",
        "müller@bücher.example.de",
        "o'neil_1@x-y.io",
        "who@example.xn--p1ai",
    ],
    "CARD": [
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "4111111111111111",
        "5555555555554444",
        "3782 822463 10005",
        "6011 1111 1111 1117",
        "2223 0031 2200 3222",
    ],
    "IBAN": [
        "GB29 NWBK 6016 1331 9268 19",
        "DE89370400440532013000",
        "DE89 3704 0044 0532 0130 00",
        "NL91ABNA0417164300",
        "NO9386011117947",
        "MT84MALT011000012345MTLCAST001S",
    ],
    "ID": [
        "219-09-9999",  # US
        "AB 12 34 56 C",  # GB, national insurance
        "AB123456C",
        "943 476 5919",  # GB, health service
        "86 095 742 719",  # DE
        "86095742719",
        "2 55 08 14 168 025 38",  # FR
        "255081416802538",
        "12345678Z",  # ES
        "12345678-Z",
        "X1234567L",
        "RSSMRA85T10A562S",  # IT
        "44051401359",  # PL
        "811218-9876",  # SE
        "19811218-9876",
        "131052-308T",  # FI
        "131052A308T",
        "85.07.30-033.28",  # BE
        "756.9217.0769.85",  # CH
        "529.982.247-25",  # BR
        "52998224725",
        "130-692-544",  # CA
        "2345 6789 0124",  # IN
        "ABCPE1234F",
        "11010519491231002X",  # CN
        "800101-1234567",  # KR
    ],
    "PHONE": [
        "+49 30 1234567",
        "+49 (30) 1234-567",
        "+1 (212) 555-0123",
        "+442079460958",
        "+86 138 0013 8000",
        "(212) 555-0123",
        "212-555-0123",
        "212.555.0123",
        "1-800-555-0199",
        "030 1234567",
        "030/123 45 67",
        "(030) 1234-567",
        "020 7946 0958",
        "01 23 45 67 89",
        "06.12.34.56.78",
        "0612345678",
        "090-1234-5678",
        "010-1234-5678",
        "13800138000",
        "0049 30 1234567",
    ],
    "IP": [
        "203.0.113.7",
        "10.1.2.3",
        "2001:db8::8a2e:370:7334",
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
        "fe80::1ff%eth0",
    ],
    "SECRET": [
        "sk-proj-abcDEF0123456789_abcDEF-0123456789",
        "sk-ant-api03-abcDEF0123456789-abcDEF",
        "sk_live_abcdef0123456789",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_11ABCDEFG0123456789_abcdefghijkl",
        "glpat-abcdefghij0123456789",
        "xoxb-123456789012-abcdefABCDEF",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA-0123456789abcdefghijklmnopqrstu",
        "hf_abcdefghijklmnopqrstuvwxyz012345",
        "SG.abcdefghijklmnop.qrstuvwxyz0123456789",
        "lsv2_pt_0123456789abcdef0123456789abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\nABCDEFGHabcdefgh01234567\n9abc==\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\\n{KEY}\\nABCD\\n-----END PRIVATE KEY-----",
        f"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,X\nDEK-Info: A,01\n\n{KEY}\n-----END EC PRIVATE KEY-----",
    ],
}  # fmt: skip
EACH = [(name, value) for name, values in PERSONAL.items() for value in values]


@pytest.mark.parametrize(("name", "value"), EACH, ids=[value[:24] for _, value in EACH])
@pytest.mark.parametrize("frame", ["{}", "Write to {}, please.", "»{}«", "联系 {}。", "({})"])
def test_what_is_personal_is_found_whole(name: str, value: str, frame: str) -> None:
    text = frame.format(value)
    hits = DETECTOR.hits(text)
    assert [(hit.name, text[hit.start : hit.end].strip("()")) for hit in hits] == [(name, value.strip("()"))]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef0123456789ABCDEF.x", "abcdef0123456789ABCDEF.x"),
        ("Authorization: Basic dXNlcjpwYXNzMTIz", "dXNlcjpwYXNzMTIz"),
        (
            "postgres://admin:hunter2@db.internal:5432/x",
            "admin:hunter2@db.internal",
        ),  # which looks like an e-mail address, too
        ("password: hunter22!", "hunter22!"),
        ("my PASSWORD is 'hunter22'", "hunter22"),
        ("api_key=abc12345", "abc12345"),
        ('{"client_secret": "a1b2c3d4"}', "a1b2c3d4"),
        ("Passwort ist geheim99", "geheim99"),
    ],
)
def test_what_says_that_it_is_secret(text: str, secret: str) -> None:
    assert [text[hit.start : hit.end] for hit in DETECTOR.hits(text) if hit.name == "SECRET"] == [secret]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Phone: 5550123", "5550123"),
        ("Tel. 123 45 67", "123 45 67"),
        ("call my mobile number 212 555 0123", "212 555 0123"),
        ("Fax: (212) 555 0123", "(212) 555 0123"),
        ("电话：12345678", ""),  # a full-width colon is not known
        ("请打电话 12345678", "12345678"),
        ("our hotel 1234567", ""),
        ("телефон 123-45-67", "123-45-67"),
    ],
)
def test_a_word_before_it_makes_a_number_a_telephone(text: str, number: str) -> None:
    assert "".join(text[hit.start : hit.end] for hit in DETECTOR.hits(text)) == number


ORDINARY = [
    "In 1999 and 2024, between 1914-1918 and 1939–1945, about 2,500,000 people.",
    "It costs 1,234,567.89 or 1.234.567,89 or 12 345 678 or 123 456 789 euros.",
    "On 01/02/2023 10:30, 2023-01-02 10:30:00, 02.01.2023 and 1/2/2023 12345.",
    "From 12/06/1944 - 10/27/1945, and 06/1944 1234567.",
    "2024-11-30T22:55:08.123456789Z and 1700000000, 1700000000123, 1700000000123456789",
    "pi is 3.14159265358979, e is 2.718281828459045, and 0.12345678901 or 0,44051401359",
    "ISBN 978-0-306-40615-7, ISBN 0-306-40615-2, ISSN 0317-8471, DOI 10.1000/182",
    "version 1.2.3.4, v10.20.30.40, section 4.1.2.3, Python 3.11.7, 127.0.0.1, 0.0.0.0",
    "order 20231130123, article 4711-0815, part AB-1234-CD, flight LH 4321, room 1-234",
    "4111 1111 1111 1112 and 1234 5678 9012 3456 fail their check digit",
    "GB29 NWBK 6016 1331 9268 18 fails its check, and XX29 NWBK 6016 1331 9268 19 is no country",
    "std::vector, a::b, Foo::bar1, 12:34:56, 1:2:3, 10:20:30:40, key:value:12",
    "@mention, user@localhost, a @ b, foo@bar, 5@3.2",
    "The token: embeddings. Basic understanding, bearer certificates, secret: none, password is required",
    "sk-learn, skip-gram, risk-averse, ask-me-anything-about-this-long-thing",
    "eyJ is how it begins, task-0123456789, deadbeef0123456789abcdef01234567",
    "0 1 2 3 4 5 6 7 8 9 10 11 12, 00 00 00 00 00, 01 1 2 3 4 5 6 7",
    "lat 52.520008, long 13.404954, 52.5200, 13.4050 at 34 m, 1920x1080, 10^12, 1e-10",
    "9 out of 10, 3-4 days, 24/7, 80/20, 2-3-4, 4x4, 16:9, 100-200-3000",
    "See https://example.com:8080/path?x=12345678&y=1-2-3#top and http://user.example/",
    "1 200 000 000 people, 7 900 000 000 people, 1.400.000.000 people",
    "UUID 123e4567-e89b-12d3-a456-426614174000, sha 4111111111111111abc",
    "[EMAIL_1] and [PHONE_2] were here before",
    "保修期为 24 个月，价格 1299 元，2023年11月30日。",
    "",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_numbers_and_words_are_left_alone(text: str) -> None:
    assert [(hit.name, text[hit.start : hit.end]) for hit in DETECTOR.hits(text)] == []


def test_values_side_by_side_are_told_apart() -> None:
    text = "2023 4111 1111 1111 1111 and jane@example.com,joe@example.com 203.0.113.7:8080 +49 30 1234567 2024"
    assert [(hit.name, text[hit.start : hit.end]) for hit in DETECTOR.hits(text)] == [
        ("CARD", "4111 1111 1111 1111"),
        ("EMAIL", "jane@example.com"),
        ("EMAIL", "joe@example.com"),
        ("IP", "203.0.113.7"),
        ("PHONE", "+49 30 1234567"),
    ]


@pytest.mark.parametrize("text", ["never 203.0.113.7", "server 203.0.113.7", "conv 203.0.113.7."])
def test_a_word_that_ends_like_version_is_none(text: str) -> None:
    assert [hit.name for hit in DETECTOR.hits(text)] == ["IP"]


def test_what_overlaps_goes_together() -> None:
    detector = Detector(tuple(Personal), [UserPattern(name="ORDER", pattern=r"ORD-\d+ \w+")])
    text = "for ORD-77 jane@example.com."
    assert [(hit.name, text[hit.start : hit.end]) for hit in detector.hits(text)] == [
        ("ORDER", "ORD-77 jane@example.com")
    ]


def test_kinds_can_be_chosen() -> None:
    text = "jane@example.com, 4111 1111 1111 1111, 203.0.113.7, 212-555-0123, AB123456C, NL91ABNA0417164300"
    for kind in set(Personal) - {Personal.SECRET}:
        name = "ID" if kind is Personal.NATIONAL_ID else kind.name
        assert [hit.name for hit in Detector([kind], ()).hits(text)] == [name]
    assert Detector((), ()).hits(text) == []


# --- an interaction


def redactor(**options: object) -> Redactor:
    return Redactor(RedactionOptions(**options), seed="a seed")  # type: ignore[arg-type]  # its fields


def found(**parts: object) -> Found:
    base = Interaction("i-1", question="q", contexts=(Passage("c"),), response="r")
    return Found(replace(base, **parts), trace_ids=("0af7651916cd43dd8448eb211c80319c",))  # type: ignore[arg-type]  # its fields


def test_equal_values_get_equal_placeholders_however_written() -> None:
    one = redactor().redact(
        found(
            question="Is Jane.Doe@Example.com or joe@example.com in charge?",
            contexts=(Passage("Write to jane.doe@example.com. Call (212) 555-0123."), Passage("212-555-0123")),
            response="jane.doe@example.com; 212.555.0123",
            history=(Turn("user", "I am joe@example.com"),),
            reference="joe@example.com",
        )
    )
    interaction = one.interaction
    assert interaction.question == "Is [EMAIL_1] or [EMAIL_2] in charge?"
    assert [passage.text for passage in interaction.contexts or ()] == [
        "Write to [EMAIL_1]. Call [PHONE_1].",
        "[PHONE_1]",
    ]
    assert interaction.response == "[EMAIL_1]; [PHONE_1]"
    assert interaction.history == (Turn("user", "I am [EMAIL_2]"),)
    assert interaction.reference == "[EMAIL_2]"


def test_what_is_found_in_one_text_is_hidden_in_all() -> None:
    one = redactor().redact(
        found(
            question="Who has 5550123?",
            contexts=(Passage("Telephone: 555 0123. The password is hunter22."),),
            response="It is 5550123 with hunter22, not hunter221 or 15550123.",
        )
    )
    assert one.interaction.question == "Who has [PHONE_1]?"
    assert one.interaction.response == "It is [PHONE_1] with [SECRET_1], not hunter221 or 15550123."


def test_masked_numbers_stay_supported_and_invented_ones_do_not() -> None:
    scorers = build(("faithfulness",), Tier.FAST)

    def score(response: str) -> float:
        plain = found(
            question="How can I reach the hotline?",
            contexts=(
                Passage("The hotline of the service is 212-555-0123 and it is open on weekdays from 9 to 17."),
            ),
            response=response,
        )
        (results,) = run_local(scorers, [redactor().redact(plain).interaction])
        outcome = results[0].outcome
        assert isinstance(outcome, Score)
        return outcome.value

    same = score("The hotline of the service is (212) 555-0123.")
    other = score("The hotline of the service is (212) 555-9999.")
    assert same > other


def test_every_field_is_redacted() -> None:
    secret = "jane@example.com"
    strings = {
        field.name: secret
        for field in fields(Found)
        if field.type in ("str", "str | None") and field.name != "span_id" and field.name != "convention"
    }
    whole = Found(
        interaction=Interaction(
            id=secret,
            question=secret,
            contexts=(Passage(secret, id=secret, metadata={secret: [{"deep": (secret, 4111111111111111)}]}),),
            response=secret,
            reference=secret,
            history=(Turn(secret, secret),),
        ),
        trace_ids=("0af7651916cd43dd8448eb211c80319c",),
        unused_passages=(Passage(secret, id=secret, metadata={"a": secret}),),
        rules={"question": f"attribute {secret}"},
        resource={"host.name": secret, "host.ip": "203.0.113.7"},
        attributes={"user.id": "u-77", "note": secret, secret: 1, "phone": 491701234567, "count": 7, "yes": True},
        usage=TokenUsage(1, 2),
        **strings,  # type: ignore[arg-type]  # all fields of strings
    )
    one = redactor().redact(whole)
    assert secret not in repr(one)
    assert "203.0.113.7" not in repr(one)
    assert "4111111111111111" not in repr(one)
    assert "u-77" not in repr(one)
    assert one.attributes["count"] == 7
    assert one.attributes["yes"] is True
    assert one.usage == TokenUsage(1, 2)
    assert one.trace_ids == whole.trace_ids
    assert one.service == "[EMAIL_1]"


def test_ids_are_hashed_so_that_sessions_stay_together() -> None:
    attributes = {"user.id": "u-77", "app.session": "s-1", "langfuse.session.id": "s-2", "plan": "u-77 or free"}
    one, two = (
        redactor().redact(replace(found(), session="s-1", user="u-77", tenant="acme", attributes=attributes))
        for _ in range(2)
    )
    assert one == two
    assert one.session == pseudonym("a seed", "s-1")
    assert one.user == pseudonym("a seed", "u-77")
    assert one.user != pseudonym("another seed", "u-77")
    assert one.user is not None
    assert one.user.startswith("id-")
    assert len(one.user) == 19
    assert one.tenant == "acme"
    assert one.attributes["user.id"] == one.user
    assert one.attributes["app.session"] == one.session
    assert one.attributes["langfuse.session.id"] == pseudonym("a seed", "s-2")
    assert one.attributes["plan"] == "u-77 or free"


def test_ids_can_be_kept() -> None:
    one = redactor(ids=Ids.KEEP).redact(
        replace(found(), session="s-1", user="jane@example.com", attributes={"user.id": "u-77"})
    )
    assert (one.session, one.user, one.attributes) == ("s-1", "[EMAIL_1]", {"user.id": "u-77"})


def test_names_that_must_differ_still_do() -> None:
    one, two = (redactor().redact(found(id=f"{name}@example.com")) for name in ("jane", "joe"))
    assert one.interaction.id != two.interaction.id
    assert "example" not in one.interaction.id + two.interaction.id
    assert redactor().redact(found(id="plain")).interaction.id == "plain"


def test_what_is_known_as_missing_or_damaged_stays_so() -> None:
    nothing = found(question=None, contexts=None, response="", damage={Field.CONTEXTS: Damage.HIDDEN})
    assert redactor().redact(nothing) == nothing
    empty = found(contexts=())
    assert redactor().redact(empty) == empty


def test_a_passage_that_was_clean_is_not_so_for_ever() -> None:
    """The same passage is no longer clean where another text shows what in it is personal."""
    one = redactor()
    passage = Passage("The number on the door is 5550123. " + "Nothing else is written there. " * 10)
    for _ in range(2):
        assert one.redact(found(contexts=(passage,))).interaction.contexts == (passage,)
    told = one.redact(found(contexts=(passage,), question="Is the telephone number 5550123?"))
    assert told.interaction.contexts is not None
    assert told.interaction.contexts[0].text.startswith("The number on the door is [PHONE_1]. ")


def test_users_patterns_and_what_is_kept() -> None:
    one = redactor(
        patterns=[
            {"name": "CUSTOMER", "pattern": r"\bC-\d{5}\b"},
            {"name": "NAME", "pattern": r"Dear (?P<secret>\w+)"},
        ],
        keep=["Help@Example.com"],
    ).redact(found(question="Dear Jane, C-12345 wrote to help@example.com and jane@example.com; C-12345!"))
    assert (
        one.interaction.question
        == "Dear [NAME_1], [CUSTOMER_1] wrote to help@example.com and [EMAIL_1]; [CUSTOMER_1]!"
    )


def test_a_text_of_its_own() -> None:
    assert (
        redactor().text("I am jane@example.com, 5550123; phone 555 0123")
        == "I am [EMAIL_1], [PHONE_1]; phone [PHONE_1]"
    )
    assert redactor(enabled=False).text("jane@example.com") == "jane@example.com"


def test_it_can_be_turned_off() -> None:
    one = replace(found(question="jane@example.com"), user="u-77")
    assert redactor(enabled=False).redact(one) is one


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [("(", "no regular expression"), ("x*", "matches the empty text"), ("", "at least 1 character")],
)
def test_a_pattern_that_can_not_work_is_refused(pattern: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        RedactionOptions(patterns=({"name": "X", "pattern": pattern},))  # type: ignore[arg-type]  # as the file gives it
    with pytest.raises(ValidationError, match="name"):
        RedactionOptions(patterns=({"name": "x y", "pattern": "a"},))  # type: ignore[arg-type]  # as above


def test_deep_and_odd_values_are_no_way_around() -> None:
    deep: object = "jane@example.com"
    for _ in range(200):
        deep = {"d": [deep]}
    one = redactor().redact(
        found(
            contexts=(
                Passage("c", metadata={"deep": deep, "odd": {"jane@example.com"}, "bytes": b"jane@example.com"}),
            )
        )
    )
    assert "jane@" not in repr(one)


# --- time

LONG = 64_000
HOSTILE = {
    "letters": "a",
    "digits": "1",
    "zeros": "0",
    "spaced digits": "1 ",
    "dotted digits": "1.",
    "at signs": "@",
    "addresses": "a@a.",
    "no top level": "a@b.c1.",
    "dots before at": "a.",
    "colons": ":",
    "hex": "a:",
    "capitals": "A",
    "capital digit": "A1",
    "iban": "DE89 ",
    "sk": "sk-",
    "jwt": "eyJ",
    "jwt dashes": "-eyJ",
    "pairs": "12 ",
    "threes": "212 ",
    "jwt dots": "eyJaaaaaaaaa.",
    "pem": "-----BEGIN PRIVATE KEY-----",
    "pem lines": "-----BEGIN PRIVATE KEY-----\nA: b\n",
    "urls": "://a:",
    "bearer": "Bearer aaaaaaaaaaaaaaaaaaaa ",
    "passwords": "password: ",
    "keys": "key",
    "plus": "+1",
    "zeros and dashes": "0-",
    "brackets": "(0",
    "cue": "phone 1",
    "quads": "1.1.1.1.",
    "surrogates": "\ud800",
    "nul": "\x00",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_text_costs_more_than_its_length(unit: str) -> None:
    """Sixteen times the text takes about sixteen times as long: thirty, with room for a busy machine. What is quadratic
    takes 256 times as long. Of each length the least of three: a whole suite's garbage is collected at times."""

    def least(length: int) -> float:
        text = unit * (length // len(unit))
        times = []
        for _ in range(3):
            start = time.process_time()
            DETECTOR.hits(text)
            times.append(time.process_time() - start)
        return min(times)

    assert least(LONG) < 30 * least(LONG // 16) + 0.2
