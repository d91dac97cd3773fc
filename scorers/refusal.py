# ruff: noqa: E501  # a rule is one pattern on one line; wrapped patterns can not be read or compared
"""Is a response noncommittal? Rules for ten languages; pure, bounded in time, no model and no network.

A response is noncommittal when it refuses, evades or says that it does not know, instead of answering. Rules
answer the clear cases; what is mixed (a refusal followed by an answer, a hedge) is `unsure`, and a judge may be
asked. Sentences that only accompany a refusal (apologies, "please contact support") do not count as an answer.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

_EXAMINED = 3000
"""Characters looked at. A longer text that opens with a refusal is `unsure`, never a sure refusal."""
_MOSTLY = 0.3
"""Share of letters in refusing sentences under which a response is taken as an answer with a caveat."""


@dataclass(frozen=True, slots=True)
class Noncommittal:
    """`label`: yes (noncommittal), no, or unsure. `rule` names what decided, e.g. `en:unable`; it never quotes."""

    label: Literal["yes", "no", "unsure"]
    rule: str


_SOURCES_EN = (
    r"(?:contexts?(?! menu)|documents?|passages?|sources?(?! (?:code|address|files?|tree|language|system|control))"
    r"|excerpts?|articles?(?! (?:of|\d))|knowledge base|search results?"
    r"|(?:provided|given|available|retrieved) (?:text|information|content|materials?|data))"
)
_THE_EN = (
    r"(?:^|\b(?:the|these|those|this|my|your|our|of|all|both|any|either|each|provided|given|supplied|retrieved"
    r"|available|attached|above|following|relevant|reference|cited|listed|returned|in|and|or) )"
)
"""What stands before a source that is meant as one: the warranty document of an answer is none."""
_REFUSALS: dict[str, tuple[tuple[str, str], ...]] = {
    "en": (
        (
            "unknown",
            r"\bi (?:really |honestly |simply )?(?:do not|don't|dont) (?:know|have (?:(?:any|enough|that|the|sufficient|access|specific|reliable|an|more|this|real-time|relevant|information) ?)+)",
        ),
        ("unknown", r"\bi have no (?:idea|information|knowledge|data|access)"),
        ("unknown", r"\b(?:i am|i'm|im) (?:not sure|unsure|not certain|uncertain|not aware|not familiar)"),
        (
            "unable",
            r"\b(?:i|we) (?:cannot|can't|can not|could not|couldn't|am not able to|was not able to|wasn't able to) (?:\w+ly )?(?:answer|find|help|assist|provide|determine|tell|say|give|locate|confirm|verify|identify|comment|discuss|share|respond|comply|fulfill)",
        ),
        (
            "unable",
            r"\bunable to (?:\w+ly )?(?:answer|find|help|assist|provide|determine|tell|say|give|locate|confirm|verify|identify|comment|comply|fulfill)",
        ),
        ("unable", r"\b(?:i'm|i am) (?:not able|not allowed|not permitted) to\b"),
        ("unable", r"\bas an ai(?: language model| assistant)?,? i\b"),
        ("unable", r"\bi (?:must|have to) (?:decline|refuse)|\bi (?:decline|refuse) to\b"),
        ("unable", r"\b(?:cannot|can't|could not|couldn't) be (?:answered|determined|found in the)"),
        (
            "sources",
            rf"{_THE_EN}{_SOURCES_EN}\b[^.!?]{{0,80}}?\b(?:do not|does not|don't|doesn't|did not|didn't) (?:\w+ly )?(?:contain|mention|provide|include|specify|say|state|address|cover|answer|discuss|give|have|indicate|describe)\b(?! to\b)",
        ),
        (
            "sources",
            rf"\b(?:(?:none|neither|not one) of (?:the|these|those) (?:\w+ ){{0,2}}|neither (?:\w+ )?|no (?:provided |retrieved )?){_SOURCES_EN}\b(?: \w+){{0,3}}? (?:answers?|contains?|mentions?|provides?|addresse?s?|says?|states?|discuss(?:es)?|includes?|describes?|specif(?:y|ies)|gives?)\b",
        ),
        (
            "sources",
            rf"\bnothing (?:\w+ )?in (?:the|these|those|this|my|any of the) (?:\w+ )?{_SOURCES_EN}\b|\b(?:is|are|was|were) not in (?:the|these|any of the) (?:provided |given |supplied |retrieved )?{_SOURCES_EN}\b",
        ),
        (
            "sources",
            rf"{_THE_EN}{_SOURCES_EN}\b[^.!?]{{0,60}}?\b(?:contains?|includes?|provides?|makes?|gives?|offers?|has|have|holds?) (?:no|insufficient) (?:\w+ )?(?:information|mention|details?|answers?|data|reference|indication|evidence)\b|{_THE_EN}{_SOURCES_EN}\b[^.!?]{{0,40}}?\b(?:lacks? (?:\w+ )?(?:information|details?|data|answers?|context)|(?:is|are) silent)\b",
        ),
        (
            "sources",
            rf"\b(?:not|isn't|aren't|wasn't) (?:\w+ly )?(?:mentioned|specified|stated|provided|covered|found|included|contained|given|available|addressed|described|present|discussed|answered) in (?:the |my |any |this |these |our )?(?:\w+ )?{_SOURCES_EN}\b",
        ),
        (
            "sources",
            r"\b(?:there is|there's|there are|there was|i (?:have )?found|i see) (?:no|not any|not enough|insufficient) (?:\w+ )?(?:information|mention|details?|data|answer|evidence|documents?|results?|context)\b",
        ),
        (
            "sources",
            r"\b(?:no|insufficient|not enough) (?:relevant |specific |such |further )?(?:information|context|data|documents?|answer|details?)(?: \w+){0,6} (?:is|was|were|are|could be|can be|has been) (?:found|available|provided|given)",
        ),
        (
            "sources",
            r"\b(?:i|we) (?:did not|didn't|do not|don't) (?:find|see) (?:any|anything|the|a|relevant|information|that)\b",
        ),
        (
            "unable",
            r"\b(?:i'm|i am) (?:just |only )?an? (?:ai|assistant|language model)[^.!?]{0,40}\b(?:can't|cannot|unable)",
        ),
        (
            "unknown",
            r"^(?:n/?a|unknown|no answer|no idea|not sure|none|unanswerable|insufficient information|not enough information|no (?:relevant )?information(?: found| available)?)$",
        ),
    ),
    "ko": (
        ("unknown", r"모르겠(?:습니다|어요|네요|다|는데)|모릅니다|잘 몰라요|알지 못합니다|알지 못해요"),
        (
            "unknown",
            r"(?:알|찾을|확인할|파악할|판단할|말씀드릴|답할|답변할|답변드릴|대답할|알려드릴|도와드릴|제공할|제공해 드릴|안내해 드릴|안내할|도울) ?수(?:는|가)? ?없(?:습니다|어요|었|네요|다$|음$|을 것|지만)",
        ),
        (
            "unable",
            r"(?:답변|대답|안내|도움|확인|제공|말씀)(?:을|를|해|하|드리|을 드리|해 드리|을 제공하)?기?(?:가|는)? ?(?:어렵습니다|어려워요|어렵네요|불가능합니다|곤란합니다)",
        ),
        ("unable", r"찾지 못(?:했|하였)|확인하지 못(?:했|하였)|확인되지 않(?:습니다|았|아요)|찾을 수가 없"),
        (
            "sources",
            r"(?:정보|내용|자료|답변|답|언급|기록|근거|데이터)(?:이|가|은|는|도|에 대한 언급이|에 대한 정보가)? ?(?:없습니다|없어요|없네요|없음$|부족합니다|부족해요|충분하지 않|존재하지 않|확인되지 않|찾을 수 없|제공되지 않)",
        ),
        (
            "sources",
            r"(?:문서|문맥|자료|컨텍스트|정보|내용|본문|지문|검색 ?결과|맥락)[^.!?]{0,40}(?:포함되어 있지|포함돼 있지|나와 ?있지|언급되어 있지|언급돼 있지|명시되어 있지|명시돼 있지|기재되어 있지|들어 ?있지|담겨 있지|언급되지|명시되지|제공되지|포함되지|포함하고 있지|다루고 있지|다루지|제시되지|나오지) 않",
        ),
        (
            "sources",
            r"(?:문서|문맥|자료|컨텍스트|본문|지문|검색 ?결과|맥락)[^.!?]{0,40}(?:관련|해당|대한) ?(?:정보|내용|언급)?(?:이|가|는|은)? ?없",
        ),
        (
            "sources",
            r"(?:문서|문맥|자료|컨텍스트|본문|지문|검색 ?결과|맥락|구절|단락)[^.!?]{0,40}(?:질문|답|내용|정보|언급|이에)[^.!?]{0,20}(?:답하지|답변하지|제공하지|언급하지|설명하지|다루지|포함하지) ?(?:않|못)",
        ),
    ),
    "ja": (
        (
            "unknown",
            r"(?:わかりません|分かりません|わかりかねます|分かりかねます|存じません|存じ上げません|不明です|知りません|わからない(?:です)?$|分からない(?:です)?$)",
        ),
        (
            "unable",
            r"(?:お答え|回答|お手伝い|提供|判断|確認|ご案内|特定|対応|お伝え)(?:を)?(?:する|し|ことが|すること(?:が|は)|は)*(?:できません|できませんでした|できかねます|いたしかねます|しかねます|難しいです)",
        ),
        (
            "unable",
            r"(?:答えられません|応じられません|お応えできません|見つけられません|見つかりません|見つかりませんでした|見当たりません|得られませんでした)",
        ),
        (
            "sources",
            r"(?:情報|記載|記述|言及|内容|回答|説明|データ)(?:が|は|も)?(?:ありません|ございません|含まれていません|含まれておりません|不足して|見つかり|見当たり|提供されていません|存在しません|十分ではありません)",
        ),
        (
            "sources",
            r"(?:文書|文脈|資料|コンテキスト|提供された|与えられた|検索結果|文章|ドキュメント)[^。!?]{0,50}(?:記載されていません|書かれていません|含まれていません|言及されていません|触れられていません|述べられていません|示されていません|明記されていません|説明されていません|言及していません)",
        ),
        (
            "sources",
            r"(?:文書|文脈|資料|コンテキスト|検索結果|文章|ドキュメント|パッセージ|抜粋)[^。!?]{0,50}(?:質問|答え|回答|情報)[^。!?]{0,10}(?:答えていません|回答していません|提供していません|示していません|含んでいません|述べていません|与えていません)",
        ),
        ("unable", r"見つけること(?:が|は)できません"),
    ),
    "zh": (
        (
            "unknown",
            r"(?:我|我们|本人)?(?:并)?不(?:太|是很)?(?:知道|清楚|了解|确定|清楚这)(?:$|[,,。这该您你关答具如])|我不知道|我不確定|我不清楚",
        ),
        (
            "unable",
            r"(?:无法|无法为|不能|没办法|没有办法|难以|無法|沒辦法|難以)(?:\w{0,6})?(?:回答|提供|确定|确认|找到|帮助|协助|判断|得知|给出|告诉|解答|回應|確定|確認|幫助|協助|判斷|給出)",
        ),
        (
            "sources",
            r"(?:没有|未|并未|并没有|沒有|並未|並沒有)(?:\w{0,4})?(?:找到|提到|提及|查到|检索到|檢索到|搜索到|足够|足夠|相关的?信息|相關的?資訊|相關信息|相关资料|相关内容)",
        ),
        (
            "sources",
            r"(?:没有|未|并未|并没有|沒有|並未|並沒有)(?:\w{0,4})?(?:提供|包含|说明|涉及|给出|說明)[^。!?]{0,12}(?:信息|資訊|答案|内容|內容|资料|資料|细节|數據|数据|问题|問題)|(?:段落|文档|文檔|上下文|资料|資料|文件|文本|内容|來源|来源|片段|材料|信息|資訊)[^。!?,,]{0,20}(?:没有|未|并未|并没有|沒有|並未|並沒有)(?:\w{0,4})?(?:提供|包含|说明|涉及|给出|說明|回答|解答|答案|回應)",
        ),
        (
            "sources",
            r"(?:信息|资料|资讯|上下文|資訊|資料|文档|文檔|内容)(?:\w{0,4})?(?:不足|不够|不夠|有限,?无法)",
        ),
    ),
    "de": (
        (
            "unknown",
            r"\bich weiß (?:es |das |dies |darüber |leider |dazu )*(?:nicht|nichts)\b|\bweiß ich (?:leider |es )*nicht\b|\bkeine ahnung\b",
        ),
        (
            "unknown",
            r"\bich (?:bin mir|bin) (?:da |leider |darüber |dabei )*(?:nicht sicher|unsicher)\b|\bmir (?:ist|sind|liegen|liegt)\b[^.!?]{0,60}\b(?:nicht bekannt|keine\b[^.!?]{0,40}\binformationen)",
        ),
        (
            "unable",
            r"\b(?:kann|könnte|konnte|können|konnten|darf)\b[^.!?]{0,80}\b(?:nicht|keine[nr]?|leider nicht|nichts)\b[^.!?]{0,60}\b(?:beantworten|finden|helfen|sagen|geben|bestimmen|feststellen|ermitteln|bestätigen|beantwortet werden|weiterhelfen|entnehmen|machen|gefunden werden|ermittelt werden)",
        ),
        ("unable", r"\bnicht in der lage\b|\bnicht möglich,? (?:diese|die|ihre|deine|eine)\b[^.!?]{0,30}\bfrage"),
        (
            "sources",
            r"\b(?:kontext|dokumente?n?|texte?|unterlagen|quellen?|passagen?|informationen|textstellen?|auszüge?n?|suchergebnisse?n?)\b[^.!?]{0,80}\b(?:nicht (?:erwähnt|enthalten|angegeben|genannt|beschrieben|zu finden|aufgeführt|hervor|ersichtlich|ausreichend)|keine (?:\w+ )?(?:informationen|angaben?|antwort|hinweise?|erwähnung|aussagen?))",
        ),
        (
            "sources",
            r"\b(?:es gibt|liegen|habe ich|ich habe|wurden|enthält|enthalten|finden sich|finde ich|ich finde)\b[^.!?]{0,40}\bkeine (?:\w+ )?(?:informationen|angaben?|antwort|daten|hinweise?)\b|\bkeine (?:\w+ )?(?:informationen|angaben?|antwort|daten)\b[^.!?]{0,60}\b(?:gefunden|vorhanden|verfügbar|vor|enthalten)\b",
        ),
        (
            "sources",
            r"\b(?:kontext|dokumente?|texte?|unterlagen|quellen?|passagen?|textstellen?|auszüge?|suchergebnisse)\b[^.!?]{0,10}\b(?:beantworte\w*|erwähn\w*|behandel\w*|nenn\w*|enthält|enthalten|liefer\w*|geben|gibt|sagt|sagen)\b[^.!?]{0,40}\b(?:nicht|nichts)\b",
        ),
        (
            "sources",
            r"\bkeine[rs]? der (?:\w+ )?(?:passagen|dokumente|texte|quellen|textstellen|auszüge|unterlagen)\b[^.!?]{0,20}\b(?:beantwortet|enthält|erwähnt|nennt|behandelt)|\b(?:in|aus) (?:den|dem|der) (?:\w+ )?(?:dokumenten|kontext|unterlagen|quellen|passagen|texten|textstellen|auszügen)\b[^.!?]{0,40}\bnichts\b",
        ),
    ),
    "fr": (
        (
            "unknown",
            r"\bje (?:ne |n')(?:le |la )?(?:sais|connais) pas\b|\bje n'(?:en )?ai (?:aucune|pas (?:d'|assez|suffisamment|accès|l'|la|de|cette))\b|\baucune idée\b|\bje ne suis pas (?:\w+ )?(?:sûre?|certaine?)\b",
        ),
        (
            "unable",
            r"\b(?:je|nous) (?:ne |n')(?:peux|pouvons|puis|suis|sommes|parviens|arrive|pourrai)\b[^.!?]{0,20}?(?:pas|malheureusement pas)?\b[^.!?]{0,30}\b(?:répondre|trouver|aider|fournir|déterminer|dire|donner|confirmer|indiquer|préciser|en mesure|capable)",
        ),
        (
            "unable",
            r"\b(?:il (?:m')?est|c'est) (?:malheureusement )?impossible de (?:\w+ )?(?:répondre|déterminer|trouver|dire|savoir)|\b(?:dans l'incapacité|pas en mesure) de\b",
        ),
        (
            "sources",
            r"\b(?:contextes?|documents?|textes?|passages?|sources?|extraits?|informations? fournies?|résultats)\b[^.!?]{0,60}\b(?:ne|n')\s?(?:\w+ )?(?:contien(?:t|nent)|mentionne(?:nt)?|précise(?:nt)?|indique(?:nt)?|fournit|fournissent|répond(?:ent)?|donne(?:nt)?|parle(?:nt)?|permet(?:tent)?|comporte(?:nt)?|incluent|inclut|(?:est|sont) pas (?:\w+ )?(?:suffisant|mentionn|pertinent|précis))",
        ),
        (
            "sources",
            r"\b(?:aucune?|pas d'|pas assez d'|pas suffisamment d') ?(?:\w+ )?(?:information|informations|réponse|mention|donnée|renseignement)s?\b[^.!?]{0,60}\b(?:trouvée?s?|disponibles?|fournie?s?|n'est|n'a|ne figure)|\bil n'y a (?:aucune|pas d'|pas assez d')\s?(?:\w+ )?(?:information|mention|réponse)|\bje n'ai (?:pas |rien )?(?:trouvé|pu trouver)",
        ),
    ),
    "es": (
        (
            "unknown",
            r"\bno (?:lo |la )?sé(?:\W*$|[,;]| (?:la respuesta|cuál|qué|si|cuándo|quién|dónde|cómo|cuánt\w+|nada|exactamente)\b)|\bno tengo (?:\w+ )?(?:información|idea|datos|acceso|conocimiento|suficiente|la respuesta|esa)|\bno estoy segur[oa]\b|\bdesconozco\b|\bni idea\b",
        ),
        (
            "unable",
            r"\bno (?:te |le |se |me )?(?:puedo|podemos|puede|pude|pudo|es posible|soy capaz de|he podido|logro|podría)\b[^.!?]{0,30}\b(?:responder|contestar|encontrar|ayudar\w*|proporcionar\w*|determinar\w*|decir\w*|dar\w*|confirmar\w*|ofrecer\w*|indicar\w*)",
        ),
        (
            "sources",
            r"\b(?:contextos?|documentos?|textos?|pasajes?|fuentes?|fragmentos?|información (?:proporcionada|disponible|dada)|resultados)\b[^.!?]{0,60}\bno (?:se )?(?:contienen?|mencionan?|proporcionan?|incluyen?|especifican?|indican?|dicen?|responden?|ofrecen?|hablan?|hay|detallan?|permiten?|es suficiente)",
        ),
        (
            "sources",
            r"\bno (?:se )?(?:hay|encuentra|encontré|encontró|existe|dispongo de|dispone de|menciona|especifica|he encontrado)\b[^.!?]{0,20}\b(?:información|datos|mención|respuesta|en (?:el|los|la|las) (?:contexto|documento|texto|pasaje|fuente|información))",
        ),
        (
            "sources",
            r"\bningun[oa] de (?:los|las|estos|estas) (?:\w+ )?(?:pasajes|documentos|textos|fuentes|fragmentos|resultados)\b[^.!?]{0,30}\b(?:responde|contiene|menciona|proporciona|incluye|especifica|indica|dice|trata)",
        ),
    ),
    "ar": (
        (
            "unknown",
            r"(?:لا اعرف|لا اعلم|لست متاكد|لا ادري|ليس لدي|ليست لدي|لا املك|لا تتوفر لدي|لا يتوفر لدي|لا توجد لدي)",
        ),
        (
            "unable",
            r"(?:لا (?:يمكنني|استطيع|يمكن|نستطيع|يمكننا)|لم (?:اتمكن|استطع|نتمكن)(?: من)?|يتعذر(?: علي)?|غير قادر(?:ة)? علي|لا اقدر)[^.!?؟]{0,30}(?:الاجابة|اجابة|العثور|مساعدت\w*|المساعدة|تقديم|تحديد|الرد|ايجاد|تاكيد|معرفة|الجواب)",
        ),
        (
            "sources",
            r"(?:لا (?:توجد|يوجد|تتوفر|تتضمن|يتضمن|يحتوي|تحتوي|يذكر|تذكر|يشير|تشير|توفر|يوفر)|لم (?:يذكر|تذكر|يرد|ترد|يتم ذكر|اجد|يتضمن|تتضمن|يحدد|تحدد))[^.!?؟]{0,60}(?:معلومات|المعلومات|السياق|النص|المستند\w*|الوثائق|الوثيقة|المصادر|اجابة|ذكر|المقاطع)",
        ),
        (
            "sources",
            r"(?:السياق|النص|المستند\w*|الوثائق|الوثيقة|المصادر|المقاطع|المعلومات)[^.!?؟]{0,40}(?:لا (?:يحتوي|تحتوي|يذكر|تذكر|يتضمن|تتضمن|يوفر|توفر|تكفي|تشير|يشير)|غير كافية|لم (?:يذكر|تذكر|يحدد|تحدد))",
        ),
        (
            "sources",
            r"(?:السياق|النص|المستند\w*|الوثائق|الوثيقة|المصادر|المقاطع|المعلومات)[^.!?؟]{0,40}(?:لا|لم) (?:تجيب|يجيب|تجب|يقدم|تقدم)|(?:لا|لم) (?:تجيب|يجيب|تجب) (?:اي|ايا) من (?:المقاطع|الوثائق|المستندات|المصادر|النصوص)",
        ),
    ),
    "hi": (
        (
            "unknown",
            r"(?:मुझे|मैं|हमें)[^।.!?]{0,40}(?:नहीं पता|पता नहीं|नहीं मालूम|मालूम नहीं|नहीं जानता|नहीं जानती|जानकारी नहीं|यकीन नहीं|नहीं है)",
        ),
        (
            "unable",
            r"(?:उत्तर|जवाब|जानकारी|मदद|सहायता|निर्धारित|पुष्टि|बता|खोज|ढूंढ)[^।.!?]{0,30}(?:नहीं (?:दे|कर|बता|मिल|पा|खोज|ढूंढ|किया जा|दिया जा) ?(?:सकता|सकती|सकते|सका|सकी|पाया|पाई|रहा|रही|ली|ला)?|असमर्थ|में असमर्थ)",
        ),
        (
            "sources",
            r"(?:संदर्भ|दस्तावेज़?|दस्तावेज़ों|पाठ|स्रोत|अनुच्छेद|दी गई जानकारी|प्रदान की गई|उपलब्ध)[^।.!?]{0,80}(?:नहीं (?:है|हैं|दिया|दी|मिली|मिला|बताया|किया|बताई)|उल्लेख नहीं|उपलब्ध नहीं|पर्याप्त नहीं|शामिल नहीं)",
        ),
        (
            "sources",
            r"(?:जानकारी|सूचना|उत्तर|विवरण|उल्लेख)[^।.!?]{0,20}(?:उपलब्ध नहीं|नहीं (?:है|मिली|मिला|दी गई|दिया गया)|पर्याप्त नहीं|मौजूद नहीं)",
        ),
    ),
    "ru": (
        (
            "unknown",
            r"\b(?:я )?(?:этого |к сожалению,? )?не (?:знаю|уверена?|располагаю|владею|имею (?:информации|данных|доступа|сведений))\b|\bмне (?:это |об этом )?(?:не известно|неизвестно|ничего не известно)|\bпонятия не имею\b|\bу меня нет (?:\w+ )?(?:информации|данных|доступа|сведений|ответа)|\bзатрудняюсь\b",
        ),
        (
            "unable",
            r"\bне (?:могу|можем|смогу|удалось|смог|смогла|могла|мог|представляется возможным|в состоянии)\b[^.!?]{0,40}\b(?:ответить|найти|помочь|предоставить|определить|сказать|дать|подтвердить|указать|обнаружить|установить|ответа)",
        ),
        ("unable", r"\bневозможно (?:\w+ )?(?:ответить|определить|установить|сказать|найти)"),
        (
            "sources",
            r"\b(?:контекст\w*|документ\w*|текст\w*|источник\w*|отрывк\w*|материалы|материалов|материалах|предоставленн\w+ информаци\w+|фрагмент\w*)\b[^.!?]{0,60}\b(?:не (?:содерж\w+|упомин\w+|указан\w*|привод\w+|сказано|говорится|предоставл\w+|описан\w*|уточняется|раскрыва\w+|отвеча\w+|дают ответ|дает ответ)|нет (?:\w+ )?(?:информации|упоминани\w+|данных|ответа|сведений)|отсутству\w+|недостаточно)",
        ),
        (
            "sources",
            r"\b(?:нет|недостаточно|отсутствует|не найдено|не нашел|не нашла|не найдена) (?:\w+ ){0,3}?(?:информаци\w|данных|упоминани\w+|сведений|ответа?)\b|\bинформаци\w+\b[^.!?]{0,40}\b(?:отсутствует|не найдена|недостаточно|нет)\b",
        ),
        (
            "sources",
            r"\bне (?:нашел|нашла|нахожу|обнаружил\w*|вижу)\b[^.!?]{0,30}\b(?:в|среди) (?:\w+ )?(?:документ|контекст|текст|отрывк|источник|материал|фрагмент)\w*|\bни один из (?:\w+ )?(?:документ|текст|отрывк|источник|материал|фрагмент)\w* не\b",
        ),
    ),
}

_FILLER: tuple[str, ...] = (
    # what accompanies a refusal without answering: apologies, offers, and the advice to ask somebody else
    r"^(?:i'm |i am |we are |we're )?(?:very |so |really )?(?:sorry|apologi[sz]e|unfortunately|my apologies)\b[^.!?]{0,60}$",
    r"^(?:please|you (?:may|might|can|could|should)|i (?:would )?(?:recommend|suggest)|i'd (?:recommend|suggest)|try|kindly|feel free|consider)\b[^.!?]{0,20}\b(?:contact\w*|consult\w*|check\w*|refer\w*|rephras\w*|provid\w*|ask\w*|try\w*|reach\w*|visit\w*|see|clarify|specify|verify\w*|look\w*|let me)\b",
    r"^(?:if you|is there|let me know|how (?:else )?can i|can i help|could you (?:please )?(?:provide|clarify|rephrase|specify)|would you like|i(?:'d| would) be happy|i(?:'m| am) happy|feel free)\b",
    r"^(?:죄송(?:합니다|해요|하지만)?|미안합니다|안타깝게도|유감스럽게도)[^.!?]{0,10}$",
    r"(?:문의|참고|확인|연락|질문|말씀|제공|검색|시도|알려)(?:해|하여|하|을|를)? ?(?:주세요|주십시오|주시기 바랍니다|주시면|보세요|보시기 바랍니다|하시기 바랍니다|하시면)|도와드릴까요|도움이 필요하시면|궁금하신",
    r"^(?:申し訳(?:ありません|ございません)|すみません|恐れ入ります|ごめんなさい|残念ながら)[^。]{0,6}$",
    r"(?:お問い合わせ|ご確認|ご参照|ご相談|お尋ね|ご連絡|お聞かせ|お知らせ|ご提供|お試し)(?:を)?(?:ください|下さい|いただ|頂|願い|お願い)",
    r"^(?:很|非常)?(?:抱歉|对不起|對不起|不好意思|遗憾)[^。]{0,6}$",
    r"^(?:请|請|建议|建議|您可以|你可以|如果您|如果你|如有|如需|若您|若有)",
    r"^(?:es )?(?:tut mir|entschuldigung|leider|verzeihung)\b[^.!?]{0,20}$|^(?:bitte|wenden sie sich|wende dich|sie können sich|kann ich|wenn sie|falls sie|gerne)\b",
    r"^(?:je (?:suis )?(?:vraiment |sincèrement )?(?:désolée?|navrée?|m'excuse)|désolée?|malheureusement)\b[^.!?]{0,20}$|^(?:veuillez|n'hésitez pas|vous (?:pouvez|devriez|pourriez)|je vous (?:recommande|invite|suggère|conseille)|pourriez-vous|si vous|puis-je)\b",
    r"^(?:lo siento|lo lamento|disculp\w+|perdón|lamentablemente)\b[^.!?]{0,20}$|^(?:por favor|te recomiendo|le recomiendo|se recomienda|puede[s]? (?:consultar|contactar)|consulte|contacte|si (?:necesita|tiene|deseas|desea|quieres)|podrías|podría)\b",
    r"^(?:عذرا|اسف|اعتذر|للاسف|نعتذر)[^.!?؟]{0,20}$|^(?:يرجي|من فضلك|الرجاء|يمكنك|انصحك|اذا كنت|هل يمكنك)",
    r"^(?:क्षमा करें|माफ़? ?कीजिए|मुझे खेद है|खेद है|दुर्भाग्य से|माफ़ करें|मुझे क्षमा करें)[^।.!?]{0,12}$|^(?:कृपया|यदि आप|अगर आप|आप)[^।.!?]{0,60}(?:संपर्क|पूछ|देख|बताएं|प्रदान|दें|करें)",
    r"^(?:извините|простите|к сожалению|прошу прощения|мне жаль)[^.!?]{0,20}$|^(?:пожалуйста|обратитесь|рекомендую|рекомендуется|вы можете|если (?:вы|у вас)|попробуйте|уточните|советую|могу ли я)\b",
)

_HEDGES: tuple[str, ...] = (
    r"^(?:well,? )?it (?:really )?depends\b|^(?:it's |it is |that's |that is )?(?:hard|difficult|impossible) to (?:say|tell|know)\b|^(?:maybe|perhaps|possibly|probably)\W*$",
    r"\b(?:there are many factors|it varies|opinions (?:differ|vary))\b",
    r"상황에 따라 다(?:릅니다|를 수)|경우에 따라 다(?:릅니다|를 수)|단정(?:하기|짓기)(?:는)? 어렵",
    r"場合によ(?:ります|って異なります)|一概には言えません|状況によ(?:ります|って異なります)",
    r"视情况而定|視情況而定|因人而异|因人而異|很难说|很難說|不好说|取决于(?:具体)?情况",
    r"^(?:das )?(?:kommt|hängt)\b[^.!?]{0,10}\b(?:darauf an|davon ab)|^schwer zu sagen",
    r"^(?:ça|cela) dépend\b|^difficile à dire|^depende\b|^(?:es )?difícil (?:de )?decir|^зависит от|^это зависит|^трудно сказать|^сложно сказать",
    r"^(?:هذا |ذلك )?يعتمد (?:الامر |ذلك )?علي|^من الصعب (?:القول|تحديد)|^(?:यह )?(?:परिस्थिति|स्थिति)[^।]{0,20}निर्भर|^कहना (?:मुश्किल|कठिन)",
)

_CONTRAST = (
    r"\b(?:but|however|although|nevertheless|that said|aber|jedoch|allerdings|mais|cependant|toutefois|pero|sin embargo"
    r"|aunque|но|однако)\b|지만|다만|그러나|는데|ただし|ですが|ますが|ませんが|しかし|但|不过|不過|然而|لكن|ولكن|लेकिन|परंतु|किंतु|हालाँकि|हालांकि"
)


_MARKS = re.compile("[\u0300-\u036f\u064b-\u0655\u0670\u0640\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_BLANKS = re.compile(r"[ \t]+")


def _fold(text: str) -> str:
    """Compare by base letters: no case, no accents, no invisible characters, one apostrophe, one alef."""
    if text.isascii():
        return _BLANKS.sub(" ", text.lower())
    text = unicodedata.normalize("NFKD", text.replace("’", "'").replace("ʼ", "'")).casefold()
    text = unicodedata.normalize("NFKC", _MARKS.sub("", text)).replace("ى", "ي")
    return _BLANKS.sub(" ", text)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_fold(pattern))


# Compiled when first asked for: most processes meet few of the languages, and the main one judges no refusal.
@functools.cache
def _rules(lang: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((f"{lang}:{name}", _compiled(pattern)) for name, pattern in _REFUSALS[lang])


@functools.cache
def _fillers() -> tuple[re.Pattern[str], ...]:
    return tuple(map(_compiled, _FILLER))


@functools.cache
def _hedges() -> tuple[re.Pattern[str], ...]:
    return tuple(map(_compiled, _HEDGES))


_HINTS = {
    # no rule of a language can match a text without one of these; looked for before any of its rules
    "en": _compiled(
        r"n't|\bnot\b|cannot|dont|\bno\b|unable|unsure|uncertain|insufficient|decline|refuse|n/?a\b|unknown|\bnone\b|neither|nothing|\black|silent"
        r"|unanswerable|\bai\b"
    ),
    "ko": re.compile("[가-힣]"),
    "ja": re.compile("[ぁ-んァ-ヶ一-鿿]"),
    "zh": re.compile("[一-鿿]"),
    "de": _compiled(r"nicht|kein|ahnung|unsicher"),
    "fr": _compiled(r"\bne\b|\bn'|\bpas\b|aucun|impossible|incapacité"),
    "es": _compiled(r"\bno\b|\bni\b|\bningun|desconozco"),
    "ar": re.compile("[\u0600-\u06ff]"),
    "hi": re.compile("[\u0900-\u097f]"),
    "ru": re.compile("[\u0400-\u04ff]"),
}
_HINTS_IN_ASCII = {lang: hint for lang, hint in _HINTS.items() if lang in ("en", "de", "fr", "es")}
_CONTRASTS = _compiled(_CONTRAST)
_SPLIT = re.compile(r"[.!?]+(?=\s|$)|[。؟।…]+|[!?]+|\n+")


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def noncommittal(text: str) -> Noncommittal:
    """Judge a response by rules.

    yes: every sentence refuses or only accompanies a refusal, or nothing is said at all (rule `empty`).
    unsure: refuses and says something of substance beside it, or only hedges. no: everything else.
    """
    cut = len(text) > _EXAMINED
    folded = _fold(text[:_EXAMINED])
    sentences = [part.strip(" \t\r\"'`*_#>-:,;()[]«»„“”") for part in _SPLIT.split(folded)]
    sentences = [part for part in sentences if any(map(str.isalnum, part))]
    if not sentences:
        return Noncommittal("yes", "empty")
    refusing, mixed, first_rule, opens = 0, False, "", False
    others: list[str] = []
    for index, sentence in enumerate(sentences):
        found = _refusal_in(sentence)
        if found is None:
            others.append(sentence)
            continue
        name, match = found
        first_rule = first_rule or name
        opens = opens or index == 0
        refusing += _letters(sentence)
        contrast = _CONTRASTS.search(sentence, match.start())
        mixed = mixed or (contrast is not None and _letters(sentence[contrast.end() :]) > 8)
    if refusing:
        other = sum(_letters(sentence) for sentence in others if not _is_filler(sentence))
        if not other and not mixed and not cut:
            return Noncommittal("yes", first_rule)
        if opens or refusing >= _MOSTLY * (refusing + other):
            return Noncommittal("unsure", first_rule)
        return Noncommittal("no", "answer_with_caveat")
    if len(sentences) <= 2 and any(rule.search(sentence) for sentence in sentences for rule in _hedges()):
        return Noncommittal("unsure", "hedge")
    if not cut and all(_is_filler(sentence) for sentence in sentences):
        return Noncommittal("unsure", "only_filler")
    return Noncommittal("no", "answer")


def _refusal_in(sentence: str) -> tuple[str, re.Match[str]] | None:
    """The first rule that the sentence matches, and where."""
    for lang, hint in (_HINTS_IN_ASCII if sentence.isascii() else _HINTS).items():
        if hint.search(sentence) is None:
            continue
        for name, rule in _rules(lang):
            if match := rule.search(sentence):
                return name, match
    return None


def _is_filler(sentence: str) -> bool:
    return any(filler.search(sentence) for filler in _fillers())
