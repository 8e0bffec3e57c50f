"""Claims: of sentences with swapped numbers, names, directions and sources, how many `verify` doubts.

python -m benchmarks.claims_bench            measure, and write the section of docs/benchmarks.md
python -m benchmarks.claims_bench --print    measure and print, with sentences that were judged wrongly

Sentences are made from the questions of `docs_prose` (`SATCHEL_EVAL`): the sentence with the answer as it stands, and
the question with its answer in place of the question word. Each has four numbered sources: the passage, two others of
the same document, and one of another document. A swap changes one thing: a number for another number, a name for
another name (each half of the time one from the same passage), a direction (a negation put in or taken out, or the
opposite word), or the number of the cited source.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.sections import run_part
from satchel.assembly.citations.claims import ClaimChecker
from satchel.assembly.citations.facts import FactKind, facts_of, opposites
from satchel.models.context import CitableSource, Claim
from satchel.text.boundaries import sentences

PART: Final = "claims"
HEADING: Final = "## Claims"
_PASSAGE_SENTENCES: Final = 12
_MIN_WORDS: Final = 6
_MOST_ANSWER_WORDS: Final = 12  # a longer one is no part of a sentence
_SUBJECT: Final = re.compile(r"^(how (?:many|much) (\w+)|who|what|which \w+)\b(?! (?:of|kind|type))", re.IGNORECASE)
_WHAT_IS: Final = re.compile(r"^(?:what|who) (is|was|are|were) (the|a|an) ([^?]+)\??$", re.IGNORECASE)
_AUXILIARY: Final = re.compile(
    r" (?:do|did|does|is|are|was|were|can|could|will|would|should|has|have|had|might|may)\b", re.IGNORECASE
)


class Case(NamedTuple):
    """A sentence of an answer, its kind, and the sources it stands before."""

    kind: str
    text: str
    cited: int
    sources: tuple[CitableSource, ...]
    document: str


def main() -> int:
    """Measure, and write the section."""
    return run_part(PART, HEADING, measured, section, __doc__ or "")


def evaluation() -> Path:
    """The folder of the evaluation data."""
    return Path(os.environ.get("SATCHEL_EVAL") or Path(__file__).parents[2] / "shared" / "eval")


def cases(half: str = "") -> Iterator[Case]:
    """True sentences, and the same with one thing swapped; `half` names the documents: fit, check, or all."""
    folder = evaluation() / "data" / "docs_prose"
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = {each["path"]: _unwrapped(each["text"]) for each in map(json.loads, lines)}
    paths = sorted(documents)
    chance = random.Random(23)
    for line in (folder / "dev.jsonl").read_text("utf-8").splitlines():
        question = json.loads(line)
        evidence = _unwrapped(next(iter(question.get("evidence") or ()), ""))
        path = question["gold_files"][0]["path"]
        if half and (paths.index(path) % 2 == 0) != (half == "fit"):
            continue
        if len(evidence.split()) < _MIN_WORDS or evidence not in documents.get(path, ""):
            continue
        sources = _sources(documents, paths, path, evidence, chance)
        statements = [("as it stands", next(iter(sentences(evidence))).strip())]
        answer = next(iter(question.get("answers") or ()), "")
        if 0 < len(answer.split()) <= _MOST_ANSWER_WORDS and (stated := _stated(question["query"], answer)):
            statements.append(("as an answer", stated))
        for wording, text in statements:
            if len(text.split()) < _MIN_WORDS:
                continue
            yield Case(f"true, {wording}", text, 1, sources, path)
            for kind, swapped in _swaps(text, answer, sources, chance):
                if swapped == text:
                    continue
                yield Case(f"{kind}, {wording}", swapped, 1, sources, path)
            yield Case(f"source, {wording}", text, chance.choice((2, 3, 4)), sources, path)


def _unwrapped(text: str) -> str:
    return re.sub(r"(?<!\n)\n(?!\n|[#|>*-])", " ", text)


def _sources(
    documents: dict[str, str], paths: list[str], path: str, evidence: str, chance: random.Random
) -> tuple[CitableSource, ...]:
    text = documents[path]
    at = text.index(evidence)
    before = "".join(sentences(text[max(0, at - 4_000) : at])[-_PASSAGE_SENTENCES // 2 :])
    after = "".join(sentences(text[at + len(evidence) : at + 4_000])[: _PASSAGE_SENTENCES // 2])
    rest = text[: max(0, at - len(before))] + text[at + len(evidence) + len(after) :]
    other = documents[chance.choice([each for each in paths if each != path])]
    passages = [before + evidence + after, _passage(rest, chance), _passage(rest, chance), _passage(other, chance)]
    return tuple(CitableSource(number, passage, Path(path).name) for number, passage in enumerate(passages, start=1))


def _passage(text: str, chance: random.Random) -> str:
    parts = sentences(text)
    start = chance.randrange(max(1, len(parts) - _PASSAGE_SENTENCES))
    return "".join(parts[start : start + _PASSAGE_SENTENCES])


def _stated(question: str, answer: str) -> str:
    """The question as a statement, with its answer; empty where that would be no sentence."""
    answer = answer.strip().rstrip(".")
    if match := _WHAT_IS.match(question):
        return f"{match[2].capitalize()} {match[3].rstrip(' ?')} {match[1].lower()} {answer}."
    match = _SUBJECT.match(question)
    if not match or _AUXILIARY.match(question[match.end() :]):
        return ""
    counted = f" {match[2]}" if match[2] else ""
    return f"{answer[:1].upper()}{answer[1:]}{counted}{question[match.end() :].rstrip(' ?')}."


def _swaps(
    text: str, answer: str, sources: tuple[CitableSource, ...], chance: random.Random
) -> Iterator[tuple[str, str]]:
    """The text with one thing changed, of each kind that it has."""
    stated = facts_of(re.sub(r"\[[\d, -]+\]", "", text)).facts
    # Of a question and its answer, the answer is what may be wrong.
    prefer = [fact for fact in stated if fact.text in answer] or list(stated)
    numbers = [fact for fact in prefer if fact.kind is FactKind.NUMBER and fact.text[:1].isdigit()]
    if numbers:
        fact = chance.choice(numbers)
        near = [
            f.text
            for f in facts_of(sources[0].text).facts
            if f.kind is FactKind.NUMBER and f.text[:1].isdigit() and f.value != fact.value and f.text not in text
        ]
        digits = re.sub(r"\d", lambda digit: str((int(digit[0]) + 3) % 9 + 1), fact.text)
        other = chance.choice(near) if near and chance.random() < 0.5 else digits
        if re.sub(r"\D", "", other) != re.sub(r"\D", "", fact.text):
            yield "number", _replaced(text, fact.text, other)
    names = [fact for fact in prefer if fact.kind is FactKind.NAME]
    if names:
        fact = chance.choice(names)
        source = sources[0] if chance.random() < 0.5 else sources[3]
        others = [
            f.text
            for f in facts_of(source.text).facts
            if f.kind is FactKind.NAME and not f.stems & fact.stems and f.text not in text
        ]
        if others:
            yield "name", _replaced(text, fact.text, chance.choice(others))
    turned = _turned(text, chance)
    if turned:
        yield "direction", turned


def _replaced(text: str, old: str, new: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, text)


def _turned(text: str, chance: random.Random) -> str:
    """The text saying the opposite: a negation put in or taken out, or an opposite word."""
    found = []
    for left, right in opposites():
        for said, opposite in ((left, right), (right, left)):
            found += [(word, opposite) for word in re.findall(r"\b[a-z]+\b", text) if word in said and len(said) < 6]
    if found and chance.random() < 0.5:
        word, opposite = chance.choice(found)
        return _replaced(text, word, sorted(opposite)[0])
    if re.search(r"\bnot\b", text):
        return re.sub(r"\bnot ", "", text, count=1)
    verb = re.search(r"\b(is|are|was|were|can|could|will|would|did|does|has|have|had)\b(?! not)", text)
    return f"{text[: verb.end()]} not{text[verb.end() :]}" if verb else ""


def judged(all_cases: Iterator[Case]) -> Iterator[tuple[Case, Claim]]:
    """Each case with what `verify` says of it."""
    checkers: dict[int, ClaimChecker] = {}
    for case in all_cases:
        key = id(case.sources)
        if key not in checkers:
            checkers = {key: ClaimChecker(case.sources)}
        yield case, checkers[key].check(case.text, case.text, 0, [case.cited])


def measured() -> dict[str, Any]:
    """The share doubted, and the verdicts, of every kind of sentence."""
    started = time.monotonic()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    show = "--wrong" in sys.argv
    half = next((arg[2:] for arg in sys.argv if arg in ("--fit", "--check")), "")
    shown: Counter[str] = Counter()
    for case, claim in judged(cases(half)):
        counts[case.kind][claim.verdict.value] += 1
        is_wrong = claim.is_doubted == case.kind.startswith("true")
        shown[case.kind] += is_wrong
        if show and is_wrong and shown[case.kind] <= 12:
            print(
                f"{case.kind}: {case.text[:260]}\n   -> {claim.verdict.value} {claim.reason} | {claim.evidence[:260]}"
            )
    rows = {kind: dict(count) for kind, count in sorted(counts.items())}
    return {"rows": rows, "seconds": round(time.monotonic() - started, 1)}


def section(figures: Mapping[str, Any]) -> str:
    """The section of the page."""
    lines = [
        HEADING,
        "",
        "Of sentences with one thing swapped, how many `verify` doubts; of true ones, how many it doubts wrongly. "
        "`python -m benchmarks.claims_bench` makes them from the questions of `docs_prose` and says how.",
        "",
        *("| sentences | number | doubted | supported | not checkable |", "|---|--:|--:|--:|--:|"),
    ]
    for kind, count in figures["rows"].items():
        total = sum(count.values())
        doubted = count.get("contradicted", 0) + count.get("not-in-sources", 0)
        lines.append(
            f"| {kind} | {total} | {doubted / total:.1%} | {count.get('supported', 0) / total:.1%} "
            f"| {count.get('not-checkable', 0) / total:.1%} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
