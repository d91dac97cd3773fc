"""Numbers that are personal by their form and their check digits: cards, bank accounts, national ids.

Each check names its source. A number without a check digit is only taken in the grouping in which people write it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_CARDS = re.compile(
    r"4\d{12}(?:\d{3}|\d{6})?|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3[0689]\d{12}(?:\d\d)?|35\d{14}|6\d{15,18}"
)
"""Visa, Mastercard, American Express, Diners Club, JCB; Discover, UnionPay and Maestro."""
IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
    "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29,
    "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28,
    "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20,
    "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
    "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip
"""Length by country: the SWIFT IBAN registry (ISO 13616)."""


def luhn(digits: str) -> bool:
    """ISO/IEC 7812-1, annex B."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def is_card(digits: str) -> bool:
    """As many digits as a card network's numbers have, with its beginning and their Luhn digit; not one digit
    throughout."""
    return _CARDS.fullmatch(digits) is not None and len(set(digits)) > 1 and luhn(digits)


def iban_end(text: str, start: int) -> int | None:
    """Where the IBAN that begins at `start` ends; None where there is none. Groups may be set apart by one space.

    ISO 13616: the first four characters moved to the end, letters as 10 to 35, leave 1 when divided by 97.
    """
    length = IBAN_LENGTHS.get(text[start : start + 2])
    if length is None:
        return None
    compact: list[str] = []
    place = start
    while place < len(text) and len(compact) < length:
        character = text[place]
        if character.isascii() and (character.isdigit() or character.isupper()):
            compact.append(character)
        elif character not in " \u00a0" or text[place - 1] in " \u00a0":
            return None
        place += 1
    if len(compact) < length or (place < len(text) and text[place].isalnum()):
        return None
    moved = "".join(compact[4:] + compact[:4])
    return place if int("".join(str(int(one, 36)) for one in moved)) % 97 == 1 else None


def _weighted(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _date(year_month_day: str) -> bool:
    """Two digits each; days of Swedish coordination numbers are 60 more."""
    month, day = int(year_month_day[2:4]), int(year_month_day[4:6])
    return 1 <= month <= 12 and (1 <= day <= 31 or 61 <= day <= 91)


def _german(digits: str) -> bool:
    """Steuer-ID (section 139b AO): one digit of the first ten comes twice or thrice; ISO 7064 mod 11,10."""
    counts = sorted(digits[:10].count(one) for one in set(digits[:10]))
    if digits[0] == "0" or counts[-1] not in (2, 3) or counts[-2:-1] not in ([1], []):
        return False
    product = 10
    for digit in digits[:10]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == int(digits[10])


def _french(digits: str) -> bool:
    """NIR (INSEE): the key is 97 less the rest of the number by 97."""
    return digits[0] in "12" and 97 - int(digits[:13]) % 97 == int(digits[13:])


def _polish(digits: str) -> bool:
    """PESEL: weights 1 3 7 9; the century is in the month."""
    month, day = int(digits[2:4]) % 20, int(digits[4:6])
    check = (10 - _weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10
    return 1 <= month <= 12 and 1 <= day <= 31 and check == int(digits[10])


def _swedish(digits: str) -> bool:
    """Personnummer (SKV 704): a date and a Luhn digit over the last ten."""
    short = digits[-10:]
    return _date(short) and luhn(short)


def _belgian(digits: str) -> bool:
    """Rijksregisternummer: 97 less the rest by 97, with a 2 before the number for those born from 2000 on."""
    number, check = digits[:9], int(digits[9:])
    return check in (97 - int(number) % 97, 97 - int("2" + number) % 97)


def _swiss(digits: str) -> bool:
    """AHV number: country code 756 and an EAN-13 digit."""
    return (10 - _weighted(digits, (1, 3) * 6) % 10) % 10 == int(digits[12])


def _brazilian(digits: str) -> bool:
    """CPF (Receita Federal): two check digits modulo 11."""
    if len(set(digits)) == 1:
        return False
    for length in (9, 10):
        rest = _weighted(digits, tuple(range(length + 1, 1, -1))) * 10 % 11 % 10
        if rest != int(digits[length]):
            return False
    return True


def _british(digits: str) -> bool:
    """NHS number: modulo 11 with weights 10 to 2."""
    check = 11 - _weighted(digits, tuple(range(10, 1, -1))) % 11
    return check != 10 and check % 11 == int(digits[9])


def _canadian(digits: str) -> bool:
    """SIN: a Luhn digit; 0 and 8 begin none."""
    return digits[0] not in "08" and luhn(digits)


_D = ((0, 1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 4, 0, 6, 7, 8, 9, 5), (2, 3, 4, 0, 1, 7, 8, 9, 5, 6),
      (3, 4, 0, 1, 2, 8, 9, 5, 6, 7), (4, 0, 1, 2, 3, 9, 5, 6, 7, 8), (5, 9, 8, 7, 6, 0, 4, 3, 2, 1),
      (6, 5, 9, 8, 7, 1, 0, 4, 3, 2), (7, 6, 5, 9, 8, 2, 1, 0, 4, 3), (8, 7, 6, 5, 9, 3, 2, 1, 0, 4),
      (9, 8, 7, 6, 5, 4, 3, 2, 1, 0))  # fmt: skip
_P = ((0, 1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 5, 7, 6, 2, 8, 3, 0, 9, 4), (5, 8, 0, 3, 7, 9, 6, 1, 4, 2),
      (8, 9, 1, 6, 0, 4, 3, 5, 2, 7), (9, 4, 5, 3, 1, 2, 6, 8, 7, 0), (4, 2, 8, 6, 5, 7, 3, 9, 0, 1),
      (2, 7, 9, 3, 8, 0, 6, 4, 1, 5), (7, 0, 4, 6, 9, 1, 3, 2, 5, 8))  # fmt: skip


def _indian(digits: str) -> bool:
    """Aadhaar (UIDAI): Verhoeff's digit (Verhoeff 1969); 0 and 1 begin none."""
    check = 0
    for place, digit in enumerate(reversed(digits)):
        check = _D[check][_P[place % 8][int(digit)]]
    return digits[0] not in "01" and check == 0


def _korean(digits: str) -> bool:
    """Resident number: a date, and the digit of sex and century; numbers since 2020 have no check digit."""
    return 1 <= int(digits[2:4]) <= 12 and 1 <= int(digits[4:6]) <= 31


def _american(digits: str) -> bool:
    """SSN (SSA): no area 000, 666 or 900 and more, no group 00, no serial 0000."""
    return digits[:3] not in ("000", "666") and digits[0] != "9" and digits[3:5] != "00" and digits[5:] != "0000"


_GROUPED: tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...] = tuple(
    (re.compile(pattern), check)
    for pattern, check in (
        (r"\d{3}-\d{2}-\d{4}", _american),
        (r"\d{2} ?\d{3} ?\d{3} ?\d{3}", _german),
        (r"\d ?\d\d ?\d\d ?\d\d ?\d{3} ?\d{3} ?\d\d", _french),
        (r"\d{11}", _polish),
        (r"(?:19|20)?\d{6}-\d{4}", _swedish),
        (r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", _belgian),
        (r"756\.?\d{4}\.?\d{4}\.?\d\d", _swiss),
        (r"\d{3}\.\d{3}\.\d{3}-\d\d|\d{11}", _brazilian),
        (r"\d{3} \d{3} \d{4}|\d{3}-\d{3}-\d{4}", _british),
        (r"\d{3}-\d{3}-\d{3}", _canadian),
        (r"\d{4} \d{4} \d{4}|\d{4}-\d{4}-\d{4}", _indian),
        (r"\d{6}-[1-8]\d{6}", _korean),
    )
)


_ANY_GROUPING = re.compile("|".join(f"(?:{pattern.pattern})" for pattern, _ in _GROUPED))


def is_national_id(text: str, digits: str) -> bool:
    """`text` is a number as it is written, `digits` its digits. 9 to 15 digits."""
    if _ANY_GROUPING.fullmatch(text) is None:
        return False
    return any(pattern.fullmatch(text) is not None and check(digits) for pattern, check in _GROUPED)


# --- ids with letters: each is tried where `LETTERED` found the beginning of one

LETTERED = re.compile(r"[A-Z]{1,6}[ -]?\d")
DIGITS_AND_LETTER = re.compile(r"\d{6}(?:\d\d-?[A-Z]|[-+A-FU-Y]\d{3}[0-9A-Y]|\d{11}[0-9X])(?![A-Za-z0-9])")
_ENDS = r"(?![A-Za-z0-9])"
_NINO = re.compile(r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]" + _ENDS)
"""United Kingdom, national insurance number (HMRC): no check digit."""
_NIE = re.compile(r"[XYZ]-?\d{7}-?[A-Z]" + _ENDS)
_FISCALE = re.compile(r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]" + _ENDS)
_PAN = re.compile(r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]" + _ENDS)
"""India, permanent account number (Income Tax Department): its fourth letter is the kind of holder; no check digit."""
_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16,
         10, 22, 25, 24, 23),
        strict=True,
    )
)  # fmt: skip
_CHINESE_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def lettered_id_end(text: str, start: int) -> int | None:
    """Where the national id that begins with a letter at `start` ends; None where there is none."""
    for pattern, check in ((_NINO, None), (_NIE, _spanish), (_FISCALE, _italian), (_PAN, None)):
        found = pattern.match(text, start)
        if found is not None and (check is None or check(found[0].replace("-", ""))):
            return found.end()
    return None


def is_digits_and_letter_id(text: str) -> bool:
    """For what `DIGITS_AND_LETTER` matches: Spanish DNI, Finnish henkilötunnus, Chinese resident number."""
    if len(text) == 18:
        return _chinese(text)
    if len(text) == 11 and not text[6].isdigit():
        return _finnish(text)
    return text[-1].isalpha() and _spanish(text.replace("-", ""))


def _spanish(text: str) -> bool:
    """DNI and NIE (Ministerio del Interior): the letter is the number modulo 23."""
    number = text[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == text[-1]


def _italian(text: str) -> bool:
    """Codice fiscale (DM 23/12/1976): odd places by a table, even places by their value, modulo 26."""
    total = sum(_ODD[one] for one in text[:15:2]) + sum(
        int(one) if one.isdigit() else ord(one) - 65 for one in text[1:15:2]
    )
    return chr(65 + total % 26) == text[15]


def _finnish(text: str) -> bool:
    """Henkilötunnus (DVV): a date, and the number modulo 31."""
    day, month = int(text[:2]), int(text[2:4])
    check = "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(text[:6] + text[7:10]) % 31]
    return 1 <= day <= 31 and 1 <= month <= 12 and check == text[10]


def _chinese(text: str) -> bool:
    """Resident identity number (GB 11643): a date, and ISO 7064 mod 11-2."""
    check = "10X98765432"[_weighted(text[:17], _CHINESE_WEIGHTS) % 11]
    return text[6:8] in ("18", "19", "20") and _date(text[8:14]) and check == text[17]
