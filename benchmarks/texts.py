"""What is measured on: text that comes with every Python, and a few paragraphs of our own in other languages."""

from __future__ import annotations

import base64
import json
import pydoc_data.topics
import sysconfig
from pathlib import Path

OWN_WORDS = {
    "Chinese": "预算按完成的文本计算，而不是按每段的估计相加。模型看到的每一部分都有编号的来源，被删去的内容会说明缺少多少。",
    "Japanese": "予算は完成した文章で数えます。各部分には番号付きの出典があり、省いた分はどれだけ欠けているかを示します。",
    "Korean": "예산은 완성된 글에서 잰다. 각 조각에는 번호가 붙은 출처가 있고, 잘린 부분은 얼마나 빠졌는지 알려 준다.",
    "Russian": "Бюджет считается по готовому тексту. У каждой части есть источник с номером, а обрезанная говорит, сколько пропущено.",
    "Arabic": "تُحسب الميزانية على النص النهائي، ولكل قطعة مصدر مرقّم، وكل قطع محذوف يذكر مقدار ما ينقص منه.",
    "Hindi": "बजट तैयार पाठ पर गिना जाता है। हर टुकड़े का क्रमांकित स्रोत होता है, और कटा हुआ भाग बताता है कि कितना छूट गया।",
    "German": "Das Budget wird am fertigen Text gezählt. Jedes Stück hat eine Quelle, und ein gekürztes sagt, wie viel fehlt.",
    "emoji": "🧳📦🗂️🧭✨🔒📏🧾🪄🔎",
}


def python_source(megabytes: float, *, after: float = 0) -> str:
    """So much of Python's own library, in the order of its names, after leaving out the first `after` megabytes."""
    wanted = int((after + megabytes) * 1_000_000)
    parts: list[str] = []
    size = 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if size >= wanted:
            break
        if "site-packages" not in path.parts and "idle_test" not in path.parts:
            text = path.read_text(encoding="utf-8", errors="replace")
            parts.append(text)
            size += len(text)
    return "".join(parts)[int(after * 1_000_000) : wanted]


def english_prose() -> str:
    """Python's language reference, as `help()` prints it."""
    return "\n".join(pydoc_data.topics.topics.values())


def kinds() -> dict[str, str]:
    """A text of each kind, some thousand characters long."""
    records = [{"id": i, "path": f"src/module_{i}.py", "score": i / 97, "tags": ["a", "b"]} for i in range(200)]
    return {
        "Python": python_source(0.4),
        "English prose": english_prose()[:400_000],
        "JSON": json.dumps(records, indent=2),
        "base64": base64.b64encode(python_source(0.02).encode()).decode(),
        **{language: words * 60 for language, words in OWN_WORDS.items()},
    }
