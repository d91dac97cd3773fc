"""What a prompt holds beside the question: context blocks, their passages, labels in several languages."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from collector.extract.documents import Document, documents
from collector.extract.values import MISSING, loads

_CONTEXT_WORDS = (
    r"(?:retrieved |relevant |given |provided |following |search |supporting |reference |background |additional )*"
    r"(?:contexts?|sources?|documents?|passages?|excerpts?|background|information|knowledge(?: base)?|references?|"
    r"search results|results|snippets|chunks|articles?|evidence|facts|context information|data)"
    r"|kontext|quellen|dokumente|auszüge|hintergrund|contexte|sources|documents|extraits|contexto|fuentes|documentos|"
    r"contesto|fonti|documenti|fontes|контекст|источники|документы|"
    r"참고 ?자료|참고 ?문서|문맥|맥락|컨텍스트|검색 ?결과|관련 ?문서|자료|문서|"
    r"コンテキスト|文脈|参考情報|参考資料|検索結果|資料|上下文|背景|参考资料|參考資料|资料|检索结果|背景信息|文档"
)
_QUESTION_WORDS = (
    r"(?:(?:the |my |user(?:'s)? |original |current |new |latest |input |final )*"
    r"(?:question|query|user (?:question|query|input|message|request)|user|input|request|human))"
    r"|frage|anfrage|question|requête|pregunta|consulta|domanda|pergunta|вопрос|запрос|"
    r"질문|문의|사용자 ?질문|質問|ユーザーの質問|问题|問題|用户问题|提问|提問"
)
_ANSWER_WORDS = (
    r"(?:your |final |helpful |assistant(?:'s)? |short |ai )*(?:answer|response|reply|assistant|output)"
    r"|antwort|réponse|respuesta|risposta|resposta|ответ|답변|대답|답|回答|答え|答案|答复"
)
# Runs of blanks give nothing back (`*+`): tables hold long ones, and two that stand side by side would try every way of
# sharing them.
_LEAD = r"^[ \t]*+(?:#{1,6}[ \t]*+|\*{1,3}|=+[ \t]*+|-{3,}[ \t]*+|<)?"
_TAIL = r"[ \t]*+(?:\*{1,3}[ \t]*+)?(?:[:：]|=++[ \t]*+$|-{3,}+[ \t]*+$|>)(?:\*{1,3})?"
_BELOW = r"[ \t]++(?:is|are)[ \t]++(?:given |provided |listed )?(?:below|as follows)[.:]?[ \t]*+$"
_CONTEXT_LABEL = re.compile(
    rf"{_LEAD}(?:(?:{_CONTEXT_WORDS})(?:{_TAIL}|[ \t]*$|{_BELOW})"
    r"|[^\n:：<>]{0,120}\b(?:contexts?|sources|documents|passages|excerpts|snippets|search results|chunks|"
    r"knowledge base|following information)\b[^\n:：<>]{0,80}[:：][ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that announces contexts: their name as a label, or a sentence about them that ends with a colon."""
_QUESTION_LABEL = re.compile(rf"{_LEAD}(?:{_QUESTION_WORDS}){_TAIL}[ \t]*", re.IGNORECASE | re.MULTILINE)
_QUESTION_HEAD = re.compile(
    rf"^[ \t]*+(?:#{{1,6}}[ \t]++|\*\*)(?:{_QUESTION_WORDS})(?:\*\*)?[ \t]*+[:：]?[ \t]*+$",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER_LABEL = re.compile(
    rf"\s*+(?:#{{1,6}}[ \t]*+|\*\*|<)?(?:{_ANSWER_WORDS})[ \t]*+(?:\([^)\n]{{0,60}}\)[ \t]*+)?(?:\*\*[ \t]*+)?"
    r"(?:[:：]|>)?(?:\*\*)?\s*+$",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<(?P<tag>documents?|docs?|passages?|contexts?|chunks?|sources?|snippets?|items?|excerpts?|results?|articles?|"
    r"search_results?|retrieved_documents?|references?)(?P<attributes>(?:\s[^<>]{0,1000})?)>",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    r"""\b(id|index|source|doc_id|document_id)\s*=\s*(?:"([^"]{0,300})"|'([^']{0,300})'|([^\s>"']{1,300}))"""
)
_INNER = re.compile(
    r"^\s*(?:<(?P<a>document_content|content|text|page_content|body)>)(?P<text>.*?)</(?P=a)>\s*$",
    re.IGNORECASE | re.DOTALL,
)
_INNER_OPEN = re.compile(r"<(document_content|content|text|page_content|body)>", re.IGNORECASE)
_MAX_PROMPT = 400_000
_RULE = re.compile(r"\n[ \t]*(?:-{5,}|={5,})[ \t]*(?:\n|$)")
_RULED = re.compile(r"[-=]{5,}[ \t]*\n(.*?)\n[ \t]*[-=]{5,}[ \t]*(?:\n|$)", re.DOTALL)
_MAX_PIECES = 500
_LABELLED = (
    r"(?:document|doc|passage|context|source|chunk|excerpt|snippet|result|reference|article|quelle|dokument|"
    r"문서|자료|資料|文档)"
)
_MARKS = (
    re.compile(r"^[ \t]*\[(?P<n>\d{1,3})\][ \t]*[:.)-]?[ \t]*", re.MULTILINE),
    re.compile(r"^[ \t]*\((?P<n>\d{1,3})\)[ \t]+", re.MULTILINE),
    re.compile(
        rf"^[ \t]*(?:#{{1,6}}[ \t]*|\*\*|-{{2,}}[ \t]*|\[|<)?{_LABELLED}[ \t]*(?:#|no\.?[ \t]*|nr\.?[ \t]*|\[)?"
        r"(?P<n>\d{1,3})\]?[ \t]*+(?:(?:\*\*|\]|>|-{2,})[ \t]*+)?(?:[:：.)-]|(?=\n))(?:\*\*)?[ \t]*\n?",
        re.MULTILINE | re.IGNORECASE,
    ),
    re.compile(r"^[ \t]*(?P<n>\d{1,3})[.)][ \t]+", re.MULTILINE),
)  # fmt: skip

_HEAD = re.compile(r"(?P<id>(?=[^\s:]*\d)(?=[^\s:]*[A-Za-z])[\w./#@-]{2,64}):[ \t]+(?=\S)")
_TASK = re.compile(r"\s*New task:\s*\n(?P<text>\S(?:.|\n)*)\Z")
"""How an agent's first message announces what the user asked."""
_NAMED = re.compile(
    r"^[ \t]*\[(?P<id>(?=[^\]\n]*\d)(?=[^\]\n]*[^\d\]\n])[\w.:/#@-]{1,64})\][ \t]*[:.)-]?[ \t]*(?=\S)",
    re.MULTILINE,
)
_EMPTY = re.compile(
    r"^[\s\W]*(?:none|null|nil|empty|n/?a|nothing(?: was)?(?: found)?|"
    r"no (?:relevant |matching |further )?"
    r"(?:context|contexts|documents?|results?|passages?|sources?|information|matches)"
    r"(?: (?:was|were|is|are))?(?: found| available| retrieved)?|없음|결과 ?없음|なし|該当なし|无|無)[\s\W]*$",
    re.IGNORECASE,
)
"""What stands in a context block when the search found nothing."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Passages taken out of a prompt, and whether the way they are marked leaves no doubt of their borders."""

    found: tuple[Document, ...]
    rule: str
    sure: bool


def has_context_label(text: str) -> bool:
    """Whether a line of the text announces contexts, or elements of them stand in it."""
    head = text[:_MAX_PROMPT]
    if _CONTEXT_LABEL.search(head) is not None or _TAG.search(head) is not None:
        return True
    return any(len(_chain(pattern, head)) >= 2 for pattern in (_MARKS[0], _MARKS[2]))


def question_span(text: str, after: int = 0) -> tuple[int, int] | None:
    """Begin and end of the question that a label at a line start announces; the first label behind `after`.

    The question runs to the end of the text, less a closing label of the answer: it may hold the word itself.
    """
    text = text[:_MAX_PROMPT]
    marks = [m for m in (_QUESTION_LABEL.search(text, after), _QUESTION_HEAD.search(text, after)) if m is not None]
    if not marks:
        return None
    mark = min(marks, key=lambda m: m.start())
    start = mark.end()
    end = len(text)
    if mark.group().lstrip().startswith("<"):
        closing = text.find("</", start)
        if closing > 0:
            end = closing
    following = _CONTEXT_LABEL.search(text, start)
    if (
        following is not None
        and following.start() < end
        and text[following.start() - 2 : following.start()] in ("\n\n", "\n")
    ):
        end = following.start()
    closing_label = _ANSWER_LABEL.search(text, max(start, end - 200), end)
    if closing_label is not None and text[closing_label.start() : closing_label.start() + 1] in (
        "\n",
        "",
        " ",
        "\r",
    ):
        end = closing_label.start()
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if end > start else None


def announced_task(text: str) -> str | None:
    """The user's words in a message of an agent that announces them as a task."""
    match = _TASK.match(text[:_MAX_PROMPT])
    return match.group("text").strip() if match is not None else None


def labelled_question(text: str, known: tuple[str, ...] = ()) -> str | None:
    """The question of a prompt by its label, behind the last known document text, and behind the last context label."""
    text = text[:_MAX_PROMPT]
    json_question = _json_question(text)
    if json_question is not None:
        return json_question
    end_of_documents = 0
    for document in known:
        position = text.rfind(document.strip())
        if position >= 0:
            end_of_documents = max(end_of_documents, position + len(document.strip()))
    if end_of_documents:
        found = question_span(text, end_of_documents)
        if found is not None and _CONTEXT_LABEL.search(text, end_of_documents, found[0]) is not None:
            return None  # the question may begin with a label of its own
        if found is None:
            found = _before_context(text)
        return text[found[0] : found[1]] if found is not None else None
    labels = list(_CONTEXT_LABEL.finditer(text))
    if labels:
        found = question_span(text, labels[-1].end()) or question_span(text)
        if found is None:
            found = _before_context(text)
    else:
        found = question_span(text)
    return text[found[0] : found[1]] if found is not None else None


def _before_context(text: str) -> tuple[int, int] | None:
    """A question that stands before the contexts without a label: the text up to a blank line and a context label."""
    label = _CONTEXT_LABEL.search(text)
    if label is None or label.start() < 2 or text[label.start() - 2 : label.start()] != "\n\n":
        return None
    head = text[: label.start()].strip()
    if not head or len(head) > 4_000 or "\n\n" in head:
        return None
    start = text.index(head)
    return (start, start + len(head))


def _json_question(text: str) -> str | None:
    body = text.strip()
    if body[:1] != "{" or body[-1:] != "}":
        return None
    value = loads(body, _MAX_PROMPT)
    if isinstance(value, dict):
        for key in ("question", "query", "user_question", "input", "user_input"):
            if isinstance(value.get(key), str) and value[key].strip():
                return str(value[key])
    return None


def pieces(text: str, *, known: int | None = None) -> Pieces | None:
    """The passages of a prompt by the way they are marked; `known` is how many there must be, where that is known.

    None where no marking is found. Not sure: marks whose number does not fit, or that are no marks of passages only.
    """
    text = text[:_MAX_PROMPT]
    for reader in (_tagged, _of_json, _numbered, _named, _bulleted, _separated):
        found = reader(text, known)
        if found is not None:
            return found
    return None


def _tagged(text: str, known: int | None) -> Pieces | None:
    """Elements such as `<document id="x">...</document>`; of nested ones the repeated inner ones."""
    by_tag: dict[str, list[Document]] = {}
    position = 0
    for _ in range(_MAX_PIECES):
        mark = _TAG.search(text, position)
        if mark is None:
            break
        tag = mark.group("tag")
        closing = text.find(f"</{tag}>", mark.end())
        position = mark.end()
        if closing < 0:
            continue
        body = text[mark.end() : closing]
        if _TAG.search(body) is not None and not tag.lower().endswith("content"):
            continue
        words = _inner(body).strip()
        attributes = {
            m.group(1): m.group(2) or m.group(3) or m.group(4)
            for m in _ATTRIBUTE.finditer(mark.group("attributes"))
        }
        ident = attributes.get("id") or attributes.get("doc_id") or attributes.get("document_id")
        if words:
            meta = {"source": attributes["source"]} if attributes.get("source") else {}
            by_tag.setdefault(tag.lower(), []).append(Document(words, id=ident, metadata=meta))
        position = closing
    if not by_tag:
        return None
    tag, found = max(by_tag.items(), key=lambda pair: len(pair[1]))
    single = len(found) == 1 and tag.endswith("s")
    fits = known is None or known == len(found)
    if single and not fits:
        return None
    if single and known is None and pieces(found[0].text or "") is not None:
        return pieces(found[0].text or "")
    return Pieces(tuple(found), "tags", fits and not (single and known is None))


def _inner(body: str) -> str:
    """What an element of the text's own holds, where the body of a document has one; else the whole body."""
    whole = _INNER.match(body)
    if whole is not None:
        return whole.group("text")
    unclosed: set[str] = set()
    for mark in _INNER_OPEN.finditer(body):
        name = mark.group(1).lower()
        if name in unclosed:
            continue
        closing = re.compile(f"</{name}>", re.IGNORECASE).search(body, mark.end())
        if closing is not None:
            return body[mark.end() : closing.start()]
        unclosed.add(name)
    return body


def _of_json(text: str, known: int | None) -> Pieces | None:
    body = text.strip()
    if body[:1] not in "{[":
        start = body.find("\n[{")
        start = start if start >= 0 else body.find("\n{")
        if start < 0:
            return None
        decoder = json.JSONDecoder(strict=False)
        try:
            value, _ = decoder.raw_decode(body, start + 1)
        except (ValueError, RecursionError):
            return None
    else:
        value = loads(body, _MAX_PROMPT)
    if value is MISSING or not isinstance(value, dict | list):
        return None
    found = documents(value, _MAX_PROMPT, loose=False)
    if not found or not all(document.text for document in found):
        return None
    return Pieces(found, "json", known is None or known == len(found))


def _numbered(text: str, known: int | None) -> Pieces | None:
    """`[1] ...`, `1. ...`, `Document 1: ...`: numbers in sequence from 1 (or 0), each at a line start."""
    for index, pattern in enumerate(_MARKS):
        best = _chain(pattern, text, known)
        if not best or (index == len(_MARKS) - 1 and len(best) < 2):
            continue
        if known is not None and len(best) > known:
            best = best[:known] if index < len(_MARKS) - 1 else best
        texts = []
        for position, mark in enumerate(best):
            end = best[position + 1].start() if position + 1 < len(best) else _end_of_block(text, mark.end())
            texts.append(text[mark.end() : end].strip())
        if not all(texts):
            continue
        texts[-1] = _last_piece(texts)
        if all(text[:1] == "«" and text[-1:] == "»" for text in texts):
            texts = [text[1:-1].strip() for text in texts]
        found = ids_at_heads(texts[:_MAX_PIECES])
        fits = known == len(best) if known is not None else not _runs_again(pattern, text, best)
        return Pieces(found, "numbers", fits)
    return None


def ids_at_heads(texts: Sequence[str]) -> tuple[Document, ...]:
    """Documents of texts; with ids where each text, of two or more, begins with a name of its own that holds a digit,
    and a colon."""
    heads = [_HEAD.match(text) for text in texts]
    names = {head.group("id") for head in heads if head is not None}
    if len(texts) < 2 or len(names) < len(texts):
        return tuple(Document(text) for text in texts)
    return tuple(
        Document(text[head.end() :], id=head.group("id"))
        for text, head in zip(texts, heads, strict=True)
        if head is not None
    )


def _chain(pattern: re.Pattern[str], text: str, known: int | None = None) -> list[re.Match[str]]:
    """The marks whose numbers run on from 1 (or from 0), the longer run of the two."""
    best: list[re.Match[str]] = []
    for first in (1, 0):
        chain: list[re.Match[str]] = []
        for mark in pattern.finditer(text):
            number = int(mark.group("n"))
            if number == first + len(chain):
                chain.append(mark)
            elif number == first and len(chain) > 1 and known is not None and len(chain) < known:
                chain = [mark]
        if len(chain) > len(best):
            best = chain
    return best


def _runs_again(pattern: re.Pattern[str], text: str, best: Sequence[re.Match[str]]) -> bool:
    """Whether a second list of the same marks stands behind the first: another search's passages, perhaps."""
    behind = [int(mark.group("n")) for mark in pattern.finditer(text, best[-1].end())]
    first = int(best[0].group("n"))
    return any(pair == (first, first + 1) for pair in pairwise(behind))


def _last_piece(texts: list[str]) -> str:
    """The last passage without what follows it: a rule, or a paragraph where no other passage has a second one."""
    last = _RULE.split(texts[-1], maxsplit=1)[0].strip()
    if len(texts) > 1 and not any("\n\n" in text for text in texts[:-1]):
        last = last.split("\n\n", 1)[0].strip()
    return last or texts[-1]


def _named(text: str, known: int | None) -> Pieces | None:
    """`[guide-7] ...`: ids in brackets, each another, at line starts from the head of the context block on."""
    label = _last_context_label(text)
    if label is None:
        return None
    block = text[label : _end_of_block(text, label)]
    marks = list(itertools.islice(_NAMED.finditer(block), _MAX_PIECES))
    names = {mark.group("id") for mark in marks}
    if len(marks) < 2 or len(names) < len(marks) or block[: marks[0].start()].strip():
        return None
    ends = [*(mark.start() for mark in marks[1:]), len(block)]
    texts = [block[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]
    if not all(texts):
        return None
    texts[-1] = _last_piece(texts)
    found = tuple(Document(words, id=mark.group("id")) for words, mark in zip(texts, marks, strict=True))
    return Pieces(found, "ids", known is None or known == len(found))


def _bulleted(text: str, known: int | None) -> Pieces | None:
    """`- ...` one per line behind a context label; sure only where their number is known."""
    label = _last_context_label(text)
    if label is None:
        return None
    end = _end_of_block(text, label)
    block = text[label:end].strip("\n")
    marks = list(re.finditer(r"^[ \t]*[-*•][ \t]+", block, re.MULTILINE))
    if not marks or block[: marks[0].start()].strip():
        return None
    texts = [
        block[mark.end() : marks[i + 1].start() if i + 1 < len(marks) else len(block)].strip()
        for i, mark in enumerate(marks[:_MAX_PIECES])
    ]
    return Pieces(tuple(Document(words) for words in texts if words), "bullets", known == len(texts))


def _separated(text: str, known: int | None) -> Pieces | None:
    """Passages between rules (`---`) or blank lines behind a context label; sure only where their number is known."""
    label = _last_context_label(text)
    if label is None:
        return None
    block = text[label : _end_of_block(text, label)].strip()
    ruled = _RULED.match(block)
    if ruled is not None:
        block = ruled.group(1).strip()
    if not block:
        return None
    for pattern, rule in (
        (r"\n[ \t]*(?:-{3,}|={3,}|\*{3,}|#{3,})[ \t]*\n", "rules"),
        (r"\n[ \t]*\n", "paragraphs"),
    ):
        texts = [words.strip() for words in re.split(pattern, block) if words.strip()]
        if known is not None and len(texts) == known:
            return Pieces(tuple(Document(words) for words in texts), rule, sure=True)
    if len(block) < 100 and _EMPTY.match(block):
        return Pieces((), "empty", sure=not known)
    return Pieces((Document(block),), "block", sure=False)


def _last_context_label(text: str) -> int | None:
    """The end of the last context label that contexts can follow."""
    label = None
    for mark in _CONTEXT_LABEL.finditer(text):
        label = mark.end()
    return label


def _end_of_block(text: str, start: int) -> int:
    """Where the contexts end: at a label of the question, else at the text's end less a closing answer label."""
    marks = [
        m.start()
        for m in (_QUESTION_LABEL.search(text, start), _QUESTION_HEAD.search(text, start))
        if m is not None
    ]
    if marks:
        return min(marks)
    closing = _ANSWER_LABEL.search(text, max(start, len(text) - 100))
    return closing.start() if closing is not None else len(text)
