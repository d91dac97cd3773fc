"""Options of redaction, the section `extract.redaction:` of groundwatch.yaml."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Personal(StrEnum):
    """What is known to be personal or secret by its form."""

    SECRET = "secret"  # noqa: S105  # the word, not one
    EMAIL = "email"
    IBAN = "iban"
    CARD = "card"
    NATIONAL_ID = "national_id"
    PHONE = "phone"
    IP = "ip"


class Ids(StrEnum):
    HASH = "hash"
    KEEP = "keep"


class UserPattern(BaseModel):
    """A pattern of the user's own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[
        str, Field(pattern=r"^[A-Z][A-Z_]{0,29}$", description="Its name in the placeholder: [NAME_1].")
    ]
    pattern: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1_000,
            description="Regular expression; what its group `secret` holds is replaced, else all that it matches. It "
            "runs over every text, so give it no nested repetitions, such as (a+)+.",
        ),
    ]

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            compiled = re.compile(value)
        except re.error as error:
            raise ValueError(f"{value!r} is no regular expression: {error}") from error
        if compiled.match(""):
            raise ValueError(f"{value!r} matches the empty text; let it need at least one character")
        return value


class RedactionOptions(BaseModel):
    """Placeholders, such as [EMAIL_1], in the place of personal values and secrets, before anything is scored, stored
    or sent. Equal values of one interaction get equal placeholders, so that what an answer repeats of its contexts
    is still supported by them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(True, description="False keeps all texts and ids as they are.")
    kinds: tuple[Personal, ...] = Field(
        tuple(Personal),
        description="What is replaced: secret (keys, tokens, passwords), email, iban, card, national_id, phone, ip.",
    )
    patterns: tuple[UserPattern, ...] = Field((), max_length=50, description="Patterns of your own.")
    keep: tuple[str, ...] = Field(
        (),
        max_length=1_000,
        description="Values that stay, in whatever case: the addresses and numbers that your documents publish.",
    )
    ids: Ids = Field(
        Ids.HASH,
        description="hash: ids of users and sessions become keyed hashes (the key is `seed`: give one of your own), "
        "so that what belongs together stays together. keep: they stay as they are.",
    )
