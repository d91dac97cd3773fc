"""Refusals that speak of the passages, in ten languages, and ordinary answers that use the same words."""

from __future__ import annotations

import pytest

from scorers.refusal import noncommittal

REFUSALS = {
    "en": [
        "The passages do not answer this question.",
        "The provided documents do not contain information about that.",
        "The context does not provide an answer.",
        "The documents do not mention the budget.",
        "I could not find this in the provided documents.",
        "None of the passages answer this question.",
        "The answer is not in the provided context.",
        "This information is not present in the documents.",
        "The context doesn't say.",
        "The retrieved passages contain no information on this topic.",
        "Nothing in the documents addresses this question.",
        "Based on the provided context, I cannot answer this question.",
        "The documents make no mention of a refund.",
        "The given context lacks information about this.",
        "There is no answer to this in the passages.",
        "Neither document mentions this.",
        "I couldn't find any mention of that in the documents.",
    ],
    "de": [
        "Die Passagen beantworten diese Frage nicht.",
        "Die Dokumente enthalten keine Informationen dazu.",
        "Der Kontext liefert keine Antwort.",
        "Ich konnte dazu in den bereitgestellten Dokumenten nichts finden.",
        "In den Dokumenten steht dazu nichts.",
        "Die Dokumente erwähnen dies nicht.",
        "Der Kontext enthält dazu nichts.",
        "Keine der Passagen beantwortet diese Frage.",
    ],
    "fr": [
        "Les passages ne répondent pas à cette question.",
        "Les documents ne contiennent pas cette information.",
        "Le contexte ne fournit pas de réponse.",
        "Je n'ai pas trouvé cela dans les documents fournis.",
        "Aucun des passages ne répond à cette question.",
        "Les documents ne mentionnent pas ce sujet.",
    ],
    "es": [
        "Los pasajes no responden a esta pregunta.",
        "Los documentos no contienen esa información.",
        "El contexto no proporciona una respuesta.",
        "No encontré esto en los documentos proporcionados.",
        "Ninguno de los pasajes responde a esta pregunta.",
        "No pude encontrar la respuesta en los documentos.",
    ],
    "ru": [
        "Отрывки не отвечают на этот вопрос.",
        "В документах нет информации об этом.",
        "Контекст не содержит ответа.",
        "Я не нашёл этого в предоставленных документах.",
        "Ни один из отрывков не отвечает на этот вопрос.",
        "Документы не упоминают об этом.",
    ],
    "ko": [
        "문서는 이 질문에 답하지 않습니다.",
        "제공된 문서에는 해당 정보가 포함되어 있지 않습니다.",
        "문맥은 답을 제공하지 않습니다.",
        "제공된 문서에서 찾을 수 없었습니다.",
        "문서에서 이에 대한 언급을 찾을 수 없습니다.",
        "지문에는 이 질문에 대한 답이 없습니다.",
        "문서에는 이에 대한 내용이 언급되어 있지 않습니다.",
    ],
    "ja": [
        "この文書はこの質問に答えていません。",
        "提供された文書にはその情報が含まれていません。",
        "文脈は答えを提供していません。",
        "提供された文書からは見つけることができませんでした。",
        "文書にはこの質問への回答がありません。",
        "文書では言及されていません。",
    ],
    "zh": [
        "这些段落没有回答这个问题。",
        "文档中没有包含相关信息。",
        "上下文没有提供答案。",
        "我在提供的文档中没有找到相关内容。",
        "所给资料未提及此事。",
        "文件中没有答案。",
        "上下文中没有提到。",
    ],
    "ar": [
        "المقاطع لا تجيب على هذا السؤال.",
        "الوثائق لا تحتوي على هذه المعلومات.",
        "السياق لا يقدم إجابة.",
        "لم أجد ذلك في الوثائق المقدمة.",
        "لا تجيب أي من المقاطع على هذا السؤال.",
        "لم أتمكن من العثور على ذلك في المستندات.",
    ],
    "hi": [
        "ये अनुच्छेद इस प्रश्न का उत्तर नहीं देते।",
        "दस्तावेज़ों में यह जानकारी नहीं है।",
        "संदर्भ उत्तर प्रदान नहीं करता।",
        "मुझे दिए गए दस्तावेज़ों में यह नहीं मिला।",
        "दस्तावेज़ इसका उल्लेख नहीं करते।",
    ],
}
ANSWERS = {
    "en": [
        "The warranty does not cover water damage.",
        "The policy does not include breakfast.",
        "The contract does not mention a deadline, so the statutory one of 30 days applies.",
        "The form does not contain a field for the tax number.",
        "The act does not provide for a refund.",
        "The article does not apply to imports.",
        "The documents do not need to be notarised.",
        "You do not have to answer this question on the form.",
        "The source code does not contain comments.",
        "The passage does not lead to the cellar.",
        "The context menu does not include Print.",
        "The documents must not contain personal data.",
        "The warranty document does not cover accidental damage.",
        "The sources do not have to be cited.",
        "He could not find his keys in the car.",
        "None of the rooms have air conditioning.",
        "No, the invoice does not contain VAT.",
        "The data sheet does not specify a maximum torque.",
        "The article of incorporation does not state a par value.",
        "The source address does not have to match.",
        "Your documents are not available in the portal after 30 days.",
        "Content in the knowledge base is not available to guests.",
    ],
    "de": [
        "Die Garantie deckt keine Wasserschäden ab.",
        "Die Unterlagen müssen nicht beglaubigt werden.",
        "Der Vertrag enthält keine Kündigungsfrist.",
        "Der Preis enthält keine Mehrwertsteuer.",
        "Die Dokumente werden nicht zurückgeschickt.",
        "Die Texte dürfen nicht länger als 100 Zeichen sein.",
    ],
    "fr": [
        "La garantie ne couvre pas les dégâts des eaux.",
        "Le prix ne comprend pas le petit-déjeuner.",
        "Les documents ne sont pas renvoyés.",
        "Le contrat ne mentionne pas de délai.",
        "Les documents ne doivent pas être agrafés.",
    ],
    "es": [
        "La garantía no cubre daños por agua.",
        "El precio no incluye desayuno.",
        "Los documentos no se devuelven.",
        "El contrato no menciona ningún plazo.",
        "Los documentos no se pueden enviar por fax.",
    ],
    "ru": [
        "Гарантия не покрывает повреждения водой.",
        "Цена не включает завтрак.",
        "Документы не возвращаются.",
        "Договор не содержит срока.",
        "Материал не содержит хлопка.",
    ],
    "ko": [
        "보증은 침수 피해를 보장하지 않습니다.",
        "가격에는 조식이 포함되어 있지 않습니다.",
        "문서는 반환되지 않습니다.",
        "계약서에는 기한이 명시되어 있지 않습니다.",
        "서류는 공증할 필요가 없습니다.",
    ],
    "ja": [
        "保証は水濡れによる損傷を対象としていません。",
        "料金には朝食が含まれていません。",
        "書類は返却されません。",
        "契約書には期限が記載されていません。",
        "この文書は公開されていません。",
    ],
    "zh": [
        "保修不包括水损。",
        "价格不含早餐。",
        "文件不予退还。",
        "合同没有规定期限。",
        "资料不需要公证。",
        "该产品没有提供保修。",
    ],
    "ar": [
        "لا يشمل الضمان أضرار المياه.",
        "السعر لا يشمل الإفطار.",
        "لا تعاد الوثائق.",
        "العقد لا يذكر موعدا نهائيا.",
    ],
    "hi": [
        "वारंटी पानी से हुए नुकसान को कवर नहीं करती।",
        "कीमत में नाश्ता शामिल नहीं है।",
        "दस्तावेज़ वापस नहीं किए जाते।",
        "अनुबंध में कोई समय सीमा नहीं है।",
    ],
}


@pytest.mark.parametrize(("lang", "text"), [(lang, text) for lang, texts in REFUSALS.items() for text in texts])
def test_the_passages_do_not_say(lang: str, text: str) -> None:
    found = noncommittal(text)
    assert found.label == "yes", found.rule


@pytest.mark.parametrize("text", [text for texts in ANSWERS.values() for text in texts])
def test_a_negation_about_something_else_is_an_answer(text: str) -> None:
    found = noncommittal(text)
    assert found.label == "no", found.rule


def test_an_answer_after_it_is_left_to_a_judge() -> None:
    text = "The passages do not answer this question directly, but the limit for hotels is 120 euros per night."
    assert noncommittal(text).label == "unsure"
