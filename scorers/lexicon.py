"""Small word lists that the text functions and local scorers read: function words, negators, months, units.

Lists are facts of the languages, kept short on purpose: a word that is missing costs a little weight in a
lexical feature, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "en": _listed(
        "a an the and or but if then than so of in on at by for from to with about into over under after "
        "before between during through up down out off again further is am are was were be been being "
        "have has had having do does did doing can could will would shall should may might must i me my "
        "we us our you your he him his she her it its they them their this that these those there here "
        "who whom whose which what when where why how all any both each few more most other some such own "
        "same too very just also as while because until not no nor only s t re ve ll d m well really yes "
        "oh"
    ),
    "de": _listed(
        "der die das den dem des ein eine einen einem einer eines und oder aber wenn dann als so von in "
        "im an am auf bei für aus zu zum zur mit über unter nach vor zwischen durch ist sind war waren "
        "sein hat haben hatte wird werden wurde kann können soll muss ich mich mir wir uns du sie er ihm "
        "ihn es ihr ihre dieser diese dieses hier dort wer was wann wo warum wie alle auch nur noch sehr "
        "sich nicht kein keine"
    ),
    "fr": _listed(
        "le la les l un une des du de d et ou mais si que qui quoi dont où quand comment pourquoi dans en "
        "sur sous par pour avec sans après avant entre est sont était être a ont avait avoir fait peut je "
        "me mon ma mes nous notre vous votre il elle ils elles lui leur ce cet cette ces se sa son ses "
        "aussi très plus ne pas au aux y qu n s c j"
    ),
    "es": _listed(
        "el la los las un una unos unas y o pero si que quien cual cuando donde cómo por para con sin "
        "sobre entre de del en a al es son era ser está están ha han había haber hace puede yo me mi mis "
        "nosotros nuestro tú su sus él ella ellos ellas lo le les se este esta estos estas ese esa eso "
        "también muy más no ni qué"
    ),
    "it": _listed(
        "il lo la i gli le un uno una e o ma se che chi cui quando dove come perché di a da in con su per "
        "tra fra del della dei delle nel nella al alla è sono era essere ha hanno aveva può io mi mio noi "
        "nostro tu lui lei loro si questo questa questi queste anche molto più non ci"
    ),
    "pt": _listed(
        "o a os as um uma e ou mas se que quem qual quando onde como por para com sem sobre entre de do "
        "da dos das em no na nos nas é são era ser está foi tem têm há pode eu me meu nós nosso ele ela "
        "eles elas lhe isso este esta esse essa também muito mais não ao à"
    ),
    "nl": _listed(
        "de het een en of maar als dan van in op aan bij voor uit te met over onder na door is zijn was "
        "waren heeft hebben had wordt worden kan moet ik me mijn wij ons je hij zij ze hem haar dit dat "
        "deze die er hier wie wat wanneer waar waarom hoe ook niet geen zeer meer"
    ),
    "ru": _listed(
        "и в во не на с со что как это по но из у к за от о об же бы ли или если то он она оно они мы вы "
        "я ты его её их был была было были быть есть для до при так все этот эта эти кто где когда почему "
        "который"
    ),
}
"""Function words by BCP 47 primary tag: they carry little about what a sentence claims, and much about its
language."""

FUNCTION_GRAMS: frozenset[str] = _listed(
    "니다 습니 합니 입니 됩니 있습 했습 었습 았습 하는 하고 하여 해서 에서 에게 으로 까지 부터 "
    "이다 이며 이고 있는 있다 한다 된다 되는 되어 하지 것은 것이 것을 것으 대한 위한 위해 경우 "
    "그리 리고 또는 및 등 수 는데 지만 어요 아요 해요 です ます まし した して いる ある する "
    "れる から まで ので など この その それ ませ せん こと もの ため よう という った て は が "
    "を に の と で も 的 了 是 在 和 有 这 那 我们 他们 一个 可以"
)
"""Character pairs of Korean, Japanese and Chinese endings and particles: they say little, as function words do."""

NEGATORS: frozenset[str] = _listed(
    "not no never none nor neither cannot without nobody nothing nowhere hardly n't nicht kein keine "
    "keinen keiner keinem nie niemals ohne weder pas jamais aucun aucune sans rien nunca jamás ningún "
    "ninguna ninguno sin tampoco non mai nessun nessuno nessuna senza não nunca nenhum nenhuma sem "
    "niet geen nooit zonder не нет никогда без никто ничего لا لم لن ليس ليست غير नहीं मत ना बिना नही"
)
"""Words that deny, in languages that put spaces between words; tokens are case-folded."""

NEGATOR_PATTERN = (
    r"(?:n['’]t\b|않|아니(?!라)|아닙|아닌|없[다는습어었을이]|없음|못[하한했해합]|\b안\s|불가능|불가(?!피)|"
    r"ない|ません|なかった|なく|不[是能会會可要得应應允]|没有|沒有|未[能经經被曾]|无法|無法|并非|並非)"
)
"""Denials that are parts of words: English contractions, and Korean, Japanese and Chinese morphemes."""

FIRST_PERSON: frozenset[str] = _listed("i i'm i've i'd i'll me my mine myself")
"""English first person singular: in an answer it mostly opens an opinion that no passage can support."""

_MONTH_NAMES = (
    "january jan januar janvier enero gennaio janeiro января",
    "february feb februar février febrero febbraio fevereiro февраля",
    "march mar märz mars marzo março maart марта",
    "april apr avril abril aprile апреля",
    "may mai mayo maggio maio mei мая",
    "june jun juni juin junio giugno junho июня",
    "july jul juli juillet julio luglio julho июля",
    "august aug août agosto augustus августа",
    "september sep sept septembre septiembre settembre setembro сентября",
    "october oct oktober octobre octubre ottobre outubro октября",
    "november nov novembre noviembre novembro ноября",
    "december dec dezember décembre diciembre dicembre dezembro декабря",
)
MONTHS: Mapping[str, int] = {
    name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names.split()
}
"""Month names and short forms to 1..12; `may`, `mar`, `mars`, `mai` count only beside a number."""

_UNIT_FORMS: Mapping[str, str] = {
    "%": "% percent pct prozent pourcent percento procent porcento 퍼센트 프로 パーセント 百分",
    "usd": "$ usd dollar dollars 달러 ドル 美元",
    "eur": "€ eur euro euros 유로 ユーロ 欧元",
    "gbp": "£ gbp pound_sterling",
    "krw": "₩ krw won 원",
    "jpy": "¥ jpy yen 엔 円",
    "cny": "cny rmb yuan 元 위안",
    "km": "km kilometer kilometers kilometre kilometres 킬로미터 キロメートル 公里",
    "m": "m meter meters metre metres 미터 メートル 米",
    "cm": "cm centimeter centimeters centimetre centimetres 센티미터",
    "mm": "mm millimeter millimeters millimetre millimetres 밀리미터",
    "mi": "mi mile miles 마일 英里",
    "ft": "ft foot feet 피트",
    "in": "inch inches 인치",
    "kg": "kg kilogram kilograms 킬로그램 公斤",
    "g": "g gram grams 그램 克",
    "t": "ton tons tonne tonnes 톤",
    "lb": "lb lbs pound pounds 파운드",
    "l": "l liter liters litre litres 리터",
    "ms": "ms millisecond milliseconds 밀리초",
    "s": "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos 초 秒",
    "min": "min mins minute minutes minuten minuto minutos 분 分",
    "h": "h hr hrs hour hours stunde stunden heure heures hora horas 시간 時間 小时",
    "d": "day days tag tage tagen jour jours día días giorno giorni dia dias dag dagen 일 일간 日 天",
    "w": "week weeks woche wochen semaine semaines semana semanas settimana settimane 주 주일 주간 週間 周",
    "mo": "month months monat monate monaten mois mes meses mese mesi maand maanden 개월 달 ヶ月 个月",
    "y": "year years yr yrs jahr jahre jahren an ans année années año años anno anni ano anos jaar 년 년간 年",
    "x": "times mal fois veces volte vezes 번 회 차례 回 次",
    "people": "people persons person employees users members 명 인 人 名",
    "pcs": "items pieces 개 個 个",
    "kb": "kb kilobyte kilobytes",
    "mb": "mb megabyte megabytes",
    "gb": "gb gigabyte gigabytes",
    "tb": "tb terabyte terabytes",
    "deg": "° °c °f degrees degree 도 度",
}
UNITS: Mapping[str, str] = {form: unit for unit, forms in _UNIT_FORMS.items() for form in forms.split()}
"""Written unit to its short name; one short name is one quantity kind, no conversion takes place."""

MULTIPLIERS: Mapping[str, float] = {
    "k": 1e3,
    "thousand": 1e3,
    "tausend": 1e3,
    "million": 1e6,
    "millions": 1e6,
    "mio": 1e6,
    "millionen": 1e6,
    "millones": 1e6,
    "bn": 1e9,
    "billion": 1e9,
    "billions": 1e9,
    "trillion": 1e12,
    "천": 1e3,
    "만": 1e4,
    "万": 1e4,
    "억": 1e8,
    "亿": 1e8,
    "億": 1e8,
    "조": 1e12,
    "兆": 1e12,
}

NUMBER_WORDS: Mapping[str, int] = {
    word: number
    for number, word in enumerate(
        (
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
        )
    )
} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
    "hundred": 100,
}
