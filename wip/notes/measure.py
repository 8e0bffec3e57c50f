#!/usr/bin/env python
"""How often is the answer to a question over real notes shown whole? As plain files, imported, and by a BM25 baseline.

    nice -n 5 /work/main/.venv/bin/python /work/notes/measure.py --out new.json [--compare old.json]

Another checkout: SATCHEL_SRC=/work/other/src … The indexes are made anew in a temporary folder (`--keep DIR` keeps them and uses them again).
"Whole": every non-blank answer line, without its marks, is inside the text that was returned, without its marks.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

if src := os.environ.get("SATCHEL_SRC"):
    sys.path.insert(0, src)
import bm25s  # noqa: E402
import satchel  # noqa: E402
from satchel.service.importing import import_source  # noqa: E402
from satchel.service.token_counts import count_tokens  # noqa: E402

HERE = Path(__file__).resolve().parent
TAG = re.compile(
    r"</?(?:a|aside|b|br|center|code|details|div|em|hr|i|img|kbd|li|ol|p|pre|small|source|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul|video)\b[^<>]*>",
    re.IGNORECASE,
)
MARKS = re.compile(r"^\s*(?:(?:>+|[-*+]|\d+[.)])(?:\s+|$)|\[[ xX/!<>-]\]\s+|\[![\w-]+\][+-]?\s*|#{1,6}\s+)+")


def plain_line(line: str) -> str:
    """A line without list marks, check boxes, quotes, headings, emphasis, tags and the targets of its links."""
    if re.match(r"^\s*(?:>\s*)*(?:`{3,}|~{3,})", line) or re.match(r"^[\s|:>-]*$", line):
        return ""
    line = re.sub(r"<!--.*?-->", " ", line)
    line = TAG.sub(" ", line)
    line = html.unescape(line)
    line = re.sub(r"!\[\[[^\]]*\]\]|!\[[^\]]*\]\([^)]*\)", " ", line)
    line = re.sub(r"\[\[(?:[^\]|]*\|)?([^\]|]*)\]\]", r"\1", line)
    line = re.sub(r"\[([^\[\]]*)\]\((?:[^()]|\([^()]*\))*\)", r"\1", line)
    line = re.sub(r"\[([^\[\]]+)\]\[[^\]]*\]", r"\1", line)
    line = MARKS.sub("", line)
    line = re.sub(r"[*_`~|\\]|==", "", line)
    return " ".join(line.casefold().split())


def plain(text: str) -> str:
    return " ".join(filter(None, map(plain_line, text.splitlines())))


def answer_lines(question: dict) -> list[str]:
    lines = (HERE / question["corpus"] / question["path"]).read_text(encoding="utf-8").splitlines()
    wanted = [plain_line(lines[n - 1]) for a, b in question["lines"] for n in range(a, b + 1)]
    return [line for line in wanted if len(re.findall(r"\w", line)) >= 3]


def score(question: dict, text: str) -> dict:
    wanted = answer_lines(question)
    shown = plain(text)
    squeezed = shown.replace(" ", "")
    missing = [line for line in wanted if line.replace(" ", "") not in squeezed]
    return {"whole": not missing, "share": 1 - len(missing) / len(wanted), "missing": missing, "lines": len(wanted)}


# The baseline


def sections(folder: Path):
    for path in sorted(folder.rglob("*.md")):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        name = path.relative_to(folder).with_suffix("").as_posix()
        trail: list[str] = []
        body: list[str] = []
        fence = ""
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            mark = re.match(r"^\s*(`{3,}|~{3,})", line)
            if mark:
                fence = "" if fence and line.strip().startswith(fence) else fence or mark.group(1)
            heading = None if fence else re.match(r"^(#{1,6})\s+(.*)", line)
            if heading:
                if any(part.strip() for part in body):
                    yield name, list(trail), "\n".join(body)
                trail[len(heading.group(1)) - 1 :] = [heading.group(2)]
                body = [line]
            else:
                body.append(line)
        if any(part.strip() for part in body):
            yield name, list(trail), "\n".join(body)


class Baseline:
    """Sections by BM25, best first; the last one that does not fit is cut at a line."""

    def __init__(self, folder: Path) -> None:
        self.sections = list(sections(folder))
        words = [f"{name} {' '.join(trail)} {body}" for name, trail, body in self.sections]
        self.ranker = bm25s.BM25()
        self.ranker.index(bm25s.tokenize(words, stopwords="en", show_progress=False), show_progress=False)

    def build(self, query: str, budget: int) -> str:
        asked = bm25s.tokenize(query, stopwords="en", show_progress=False)
        found, _ = self.ranker.retrieve(asked, k=min(60, len(self.sections)), show_progress=False)
        text = ""
        for number in found[0]:
            name, _, body = self.sections[number]
            more = f"{text}## {name}\n{body.strip()}\n\n"
            if count_tokens(more) <= budget:
                text = more
                continue
            lines = f"## {name}\n{body.strip()}".splitlines()
            low, high = 0, len(lines)
            while low < high:
                middle = (low + high + 1) // 2
                if count_tokens(text + "\n".join(lines[:middle])) <= budget:
                    low = middle
                else:
                    high = middle - 1
            text += "\n".join(lines[:low])
            break
        return text


# Satchel


def without_query(text: str) -> str:
    return text.rpartition("\nUser Query:")[0] or text


def contexts(corpus: str, kind: str, questions: list[dict], budgets: list[int], modes: list[str], place: Path, told: dict):
    folder = HERE / corpus
    if "bm25" in modes:
        baseline = Baseline(folder)
        for question in questions:
            for budget in budgets:
                yield "bm25", question, budget, baseline.build(question["question"], budget), 0.0
    if "files" in modes:
        with satchel.open(folder, index_dir=str(place / "files" / corpus)) as client:
            for question in questions:
                for budget in budgets:
                    start = time.perf_counter()
                    text = client.build(question["question"], token_budget=budget, **told).text
                    yield "files", question, budget, text, time.perf_counter() - start
    if "import" in modes:
        home = place / "workspaces" / corpus
        home.mkdir(parents=True, exist_ok=True)
        kept = str(place / "imported" / corpus)
        engine = satchel.open_engine(home, index_dir=kept)
        report = import_source(engine.workspace, folder, kind="notion" if kind == "notion" else "vault")
        print(f"  imported {corpus}: {dict(report.counts)}", *report.notes[:3], sep="\n    ", file=sys.stderr)
        engine.close()
        with satchel.open(home, index_dir=kept) as client:
            for question in questions:
                for budget in budgets:
                    start = time.perf_counter()
                    text = client.build(question["question"], token_budget=budget, **told).text
                    yield "import", question, budget, text, time.perf_counter() - start


def mean(values) -> float:
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


def table(results: list[dict], modes: list[str], budgets: list[int]) -> str:
    head = "".join(f" {mode + '@' + str(budget):>22}" for budget in budgets for mode in modes)
    out = [f"{'corpus / kind':<24}{'n':>4}{head}", f"{'':28}" + "".join(f"{'whole share tokens':>23}" for _ in budgets for _ in modes)]
    corpora = sorted({one["corpus"] for one in results})
    rows = [(c, k) for c in [*corpora, "all"] for k in ("howto", "fact", "both")]
    for corpus, kind in rows:
        chosen = [o for o in results if corpus in (o["corpus"], "all") and kind in (o["kind"], "both")]
        cells = ""
        for budget in budgets:
            for mode in modes:
                cell = [o for o in chosen if o["mode"] == mode and o["budget"] == budget]
                cells += f"   {mean(o['whole'] for o in cell):7.3f} {mean(o['share'] for o in cell):5.3f} {mean(o['tokens'] for o in cell):6.0f}"
        count = len({(o["corpus"], o["question"]) for o in chosen})
        out.append(f"{corpus + ' ' + kind:<24}{count:>4}{cells}")
    return "\n".join(out)


def compared(new: list[dict], old: list[dict]) -> str:
    def key(one: dict):
        return one["corpus"], one["question"], one["mode"], one["budget"]

    before = {key(one): one for one in old}
    out = []
    for mode in sorted({one["mode"] for one in new}):
        for budget in sorted({one["budget"] for one in new}):
            pairs = [(o, before[key(o)]) for o in new if o["mode"] == mode and o["budget"] == budget and key(o) in before]
            if not pairs:
                continue
            won = [n for n, o in pairs if n["whole"] and not o["whole"]]
            lost = [n for n, o in pairs if o["whole"] and not n["whole"]]
            whole = [mean(x["whole"] for x in side) for side in zip(*pairs)]
            share = [mean(x["share"] for x in side) for side in zip(*pairs)]
            out.append(f"{mode}@{budget}: whole {whole[1]:.3f} -> {whole[0]:.3f} (+{len(won)} -{len(lost)}), share {share[1]:.3f} -> {share[0]:.3f}, {len(pairs)} questions")
            out += [f"  + {o['corpus']}: {o['question']}" for o in won] + [f"  - {o['corpus']}: {o['question']}" for o in lost]
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the results of each question there (JSON)")
    parser.add_argument("--compare", type=Path, help="results of an earlier run")
    parser.add_argument("--corpus", action="append", help="only this corpus; may be repeated")
    parser.add_argument("--modes", default="bm25,files,import")
    parser.add_argument("--budgets", default="1000,4000")
    parser.add_argument("--keep", type=Path, help="keep indexes here and use them again")
    parser.add_argument("--texts", type=Path, help="write each returned text below this folder")
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE of each question to Satchel, e.g. min_relevance=0")
    parser.add_argument("--only", help="only questions that contain this")
    asked = parser.parse_args()
    modes, budgets = asked.modes.split(","), [int(b) for b in asked.budgets.split(",")]
    kinds = {one["name"]: one["kind"] for one in json.loads((HERE / "corpora.json").read_text())["corpora"]}
    questions = [json.loads(line) for line in (HERE / "notes.jsonl").read_text(encoding="utf-8").splitlines()]
    if asked.only:
        questions = [q for q in questions if asked.only.casefold() in q["question"].casefold()]
    told = {name: json.loads(value) for name, _, value in (one.partition("=") for one in asked.option)}
    results = []
    with tempfile.TemporaryDirectory(prefix="notes-measure-") as made:
        place = asked.keep or Path(made)
        for corpus in asked.corpus or kinds:
            mine = [q for q in questions if q["corpus"] == corpus]
            if not mine:
                continue
            start = time.perf_counter()
            for mode, question, budget, text, seconds in contexts(corpus, kinds[corpus], mine, budgets, modes, place, told):
                tokens = count_tokens(text)
                assert tokens <= budget, (mode, question["question"], tokens)
                results.append({**question, "mode": mode, "budget": budget, "tokens": tokens, "seconds": round(seconds, 3), **score(question, without_query(text))})
                if asked.texts:
                    slug = re.sub(r"\W+", "-", question["question"])[:60]
                    path = asked.texts / corpus / f"{slug}.{mode}.{budget}.md"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
            print(f"  {corpus}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    print(table(results, modes, budgets))
    if asked.out:
        asked.out.write_text(json.dumps(results, ensure_ascii=False, indent=1), encoding="utf-8")
    if asked.compare:
        print(compared(results, json.loads(asked.compare.read_text(encoding="utf-8"))))


main()
