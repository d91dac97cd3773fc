"""The refusal rules: ten languages, what only looks like a refusal, and what is left to a judge."""

from __future__ import annotations

import pytest

from scorers.refusal import noncommittal

REFUSALS = [
    "I don't know.",
    "I'm sorry, but I cannot answer this question based on the provided context.",
    "The context does not mention the hotel limit.",
    "I could not find any information about that. Please contact HR.",
    "N/A",
    "Unfortunately, there is no information available about this topic in the documents.",
    "I don’t have enough information to answer that.",
    "The provided documents do not contain information on the parental leave policy.",
    "",
    "As an AI language model, I can't provide that.",
    "I couldn't find anything about that in the retrieved documents.",
    "죄송합니다. 제공된 문서에서 해당 정보를 찾을 수 없습니다.",
    "잘 모르겠습니다.",
    "제공된 문맥에는 해당 내용이 포함되어 있지 않습니다. 인사팀에 문의해 주세요.",
    "죄송하지만 답변드리기 어렵습니다.",
    "관련 정보가 없습니다.",
    "申し訳ありませんが、その情報は見つかりませんでした。",
    "わかりません。",
    "提供された文書には記載されていません。人事部にお問い合わせください。",
    "お答えできません。",
    "抱歉，我无法回答这个问题。",
    "我不知道。",
    "提供的上下文中没有提到相关信息。",
    "很抱歉，文档中未提及该政策。请联系人事部门。",
    "Das weiß ich leider nicht.",
    "Ich kann diese Frage leider nicht beantworten.",
    "Der Kontext enthält keine Informationen zu diesem Thema.",
    "Leider liegen mir dazu keine Informationen vor.",
    "Je ne sais pas.",
    "Je suis désolé, mais je ne peux pas répondre à cette question.",
    "Le contexte ne mentionne pas cette information.",
    "Je n'ai trouvé aucune information à ce sujet.",
    "No lo sé.",
    "Lo siento, no puedo responder a esa pregunta.",
    "El contexto no menciona el límite de hotel.",
    "No se encuentra información sobre esto en los documentos.",
    "لا أعرف.",
    "عذراً، لا يمكنني الإجابة على هذا السؤال.",
    "لا توجد معلومات كافية في السياق.",
    "मुझे नहीं पता।",
    "क्षमा करें, मैं इस प्रश्न का उत्तर नहीं दे सकता।",
    "दिए गए संदर्भ में इसकी जानकारी उपलब्ध नहीं है।",
    "Я не знаю.",
    "К сожалению, я не могу ответить на этот вопрос.",
    "В контексте нет информации об этом.",
    "В предоставленных документах это не указано.",
]
ANSWERS = [
    "The hotel limit is 120 euros per night.",
    "Meals are not included in the daily allowance.",
    "The city does not have an airport.",
    "Breakfast is not provided by the hotel.",
    "Employees cannot claim alcohol.",
    "호텔 한도는 1박당 15만 원입니다.",
    "식사비는 출장비에 포함되어 있지 않습니다.",
    "원인을 알 수 없는 오류가 발생하면 재부팅하세요.",
    "주말에는 환불이 불가능합니다.",
    "上限は1泊15,000円です。",
    "食事代は含まれていません。",
    "酒店上限为每晚500元。",
    "餐费不包含在内。",
    "周末不能退款。",
    "Das Hotellimit beträgt 120 Euro.",
    "Frühstück ist nicht enthalten.",
    "La limite est de 120 euros.",
    "Le petit-déjeuner n'est pas inclus.",
    "El límite es de 120 euros.",
    "El desayuno no está incluido.",
    "الحد الأقصى هو 120 يورو.",
    "सीमा 120 यूरो है।",
    "नाश्ता शामिल नहीं है।",
    "Лимит составляет 120 евро.",
    "Завтрак не включён в стоимость.",
    "No.",
    "Yes.",
    "Nein.",
    "Refunds are not available on weekends.",
    "The store has no refund policy.",
    "Paris",
    "42",
    "He did not know about the fire until Monday.",
]
MIXED = [
    "I couldn't find the exact limit, but the daily allowance is 50 euros.",
    "I don't know the hotel limit. The daily allowance is 50 euros per day and is paid monthly.",
    "It depends.",
    "정확한 한도는 찾을 수 없지만 일비는 5만 원입니다.",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refuses(text: str) -> None:
    assert noncommittal(text).label == "yes"


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_though_it_says_no(text: str) -> None:
    assert noncommittal(text).label == "no"


@pytest.mark.parametrize("text", [*MIXED, "I'm sorry.", "You can contact support at extension 33."])
def test_leaves_the_mixed_to_a_judge(text: str) -> None:
    assert noncommittal(text).label == "unsure"


def test_one_caveat_in_a_long_answer_is_an_answer() -> None:
    answer = "The allowance is 50 euros a day. It is paid monthly by transfer. Receipts are due within 30 days. "
    assert noncommittal(answer * 3 + "The context does not mention taxis.").label == "no"


def test_a_long_text_that_opens_with_a_refusal_is_never_sure() -> None:
    assert noncommittal("I don't know. " * 1000).label == "unsure"


def test_invisible_characters_and_accents_hide_nothing() -> None:
    assert noncommittal("I don\u2019t\u200b k\u200bnow.").label == "yes"
    assert noncommittal("JE NE SAIS PAS").label == "yes"


def test_the_rule_is_named() -> None:
    assert noncommittal("I do not know.").rule == "en:unknown"
    assert noncommittal("  ").rule == "empty"
