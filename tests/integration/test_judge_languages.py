"""Ten languages through the whole judged path: claims stay as they are, refusals cost nothing."""

from __future__ import annotations

import pytest

from scorers import catalog
from scorers.judge.options import JudgeOptions
from scorers.judge.service import Judge
from scorers.outcome import NotApplicable, NotApplicableReason, Score
from scorers.testing import ScriptedJudge, interaction

EXCHANGES = {
    "en": ("What is the limit?", "The limit is 120 euros.", "Breakfast is included.", "I don't know."),
    "ko": ("한도는 얼마인가요?", "한도는 15만 원입니다.", "조식이 포함됩니다.", "잘 모르겠습니다."),
    "ja": ("上限はいくらですか?", "上限は1万5千円です。", "朝食が含まれます。", "わかりません。"),
    "zh": ("限额是多少?", "限额是五百元。", "含早餐。", "我不知道。"),
    "de": ("Wie hoch ist die Grenze?", "Die Grenze ist 120 Euro.", "Frühstück ist dabei.", "Das weiß ich nicht."),
    "fr": (
        "Quelle est la limite ?",
        "La limite est de 120 euros.",
        "Le petit-déjeuner est inclus.",
        "Je ne sais pas.",
    ),
    "es": ("¿Cuál es el límite?", "El límite es de 120 euros.", "El desayuno está incluido.", "No lo sé."),
    "ar": ("ما هو الحد؟", "الحد هو 120 يورو.", "الإفطار مشمول.", "لا أعرف."),
    "hi": ("सीमा क्या है?", "सीमा 120 यूरो है.", "नाश्ता शामिल है.", "मुझे नहीं पता।"),
    "ru": ("Какой лимит?", "Лимит составляет 120 евро.", "Завтрак включён.", "Я не знаю."),
}


@pytest.mark.parametrize("language", EXCHANGES)
@pytest.mark.parametrize("plan", ["standard", "fused"])
async def test_half_supported_and_refused(language: str, plan: str) -> None:
    question, supported, unsupported, refusal = EXCHANGES[language]
    async with ScriptedJudge() as server:
        options = JudgeOptions.model_validate({"base_url": server.base_url, "model": "m", "plan": plan})
        async with Judge(options, catalog.judged(["faithfulness", "groundedness", "noncommittal"])) as judge:
            results = await judge.score(interaction(question, [supported], f"{supported} {unsupported}"))
            asked = len(server.chats)
            refused = await judge.score(interaction(question, [supported], refusal))
            assert len(server.chats) == asked
    assert [one.outcome for one in results[:2]] == [Score(0.5, raw=0.5), Score(0.5, raw=1.0)]
    assert [verdict.claim for verdict in results[0].verdicts] == [supported, unsupported]
    assert [one.outcome for one in refused[:2]] == [NotApplicable(NotApplicableReason.REFUSAL)] * 2
    assert refused[2].outcome == Score(1.0, raw=1.0, label="yes")
