"""Write the trained rows as the files that the product loads, and vectors to check its loader against.

The model's scores come from ``score.py``, which reads these files with the product's own loader.
"""

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
from pieces import Pieces, embed, read_vocabulary

NAME = "satchel-static-2"
LARGEST = 20_000_000
"""Bytes: what a wheel may carry for it."""
GOLDEN = [
    "",
    "   \n\t",
    "?!... --- ***",
    "how are routes registered",
    "websocket endpoint implementation",
    "getUserByID2",
    "HTTPServer http_server HTTP server",
    "def parseHTTPHeader(raw_bytes):\n    return raw_bytes.decode().split(':')",
    "func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {\n\tm.handler.ServeHTTP(w, r)\n}",
    "async function mergeConfig(a, b) { return { ...a, ...b } }",
    "impl<T> Drop for MutexGuard<'_, T> { fn drop(&mut self) { self.lock.unlock() } }",
    "SELECT name, COUNT(*) FROM users GROUP BY name HAVING COUNT(*) > 1;",
    "The committee approved the annual budget after a long debate about heating costs.",
    "Each party shall indemnify and hold harmless the other party.",
    "Café naïve résumé Zürich",
    "机器学习模型",
    "データベース接続のタイムアウトを設定する",
    "데이터베이스에 다시 연결하려면",
    "كيف تتم إعادة محاولة الطلب",
    "Wie wird eine fehlgeschlagene Anfrage wiederholt?",
    "Привет, мир: print('hello')",
    "emoji 🚀 and ½ and ﬁne ligatures",
    "retry retry retry with exponential backoff and jitter",
    "0xDEADBEEF 3.14159 v2.0.1 sha256 utf8",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trained", type=Path, help="the folder with vocabulary.txt and rows.npy")
    parser.add_argument("out", type=Path)
    parser.add_argument("--golden", type=Path)
    parser.add_argument("--count-weight", choices=("log", "raw"), default="log")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    trained = np.load(arguments.trained / "rows.npy")
    scales = np.maximum(np.abs(trained).max(1), 1e-12).astype("<f4") / 127
    rows = np.clip(np.round(trained / scales[:, None]), -127, 127).astype(np.int8)
    vocabulary = read_vocabulary(arguments.trained / "vocabulary.txt")
    assert len(vocabulary) == len(rows) == len(set(vocabulary))
    files = {
        "rows.i8": rows.tobytes(),
        "scales.f32": scales.astype("<f4").tobytes(),
        "vocabulary.txt": ("\n".join(vocabulary) + "\n").encode(),
    }
    for name, content in files.items():
        (arguments.out / name).write_bytes(content)
    about = {
        "name": NAME,
        "dimensions": rows.shape[1],
        "rows": len(rows),
        "count_weight": arguments.count_weight,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    (arguments.out / "model.json").write_text(json.dumps(about, indent=2) + "\n")
    size = sum(map(len, files.values()))
    assert size < LARGEST, size
    print(f"{len(rows)} rows, {size} bytes")

    if arguments.golden:
        write_golden(arguments.out, arguments.golden)


def write_golden(model: Path, golden: Path) -> None:
    """Vectors computed from the exported files alone."""
    about = json.loads((model / "model.json").read_text())
    pieces = Pieces(read_vocabulary(model / "vocabulary.txt"))
    rows = np.fromfile(model / "rows.i8", np.int8).reshape(about["rows"], about["dimensions"])
    scales = np.fromfile(model / "scales.f32", "<f4")
    vectors = [embed(text, pieces, rows, scales, about["count_weight"]) for text in GOLDEN]
    found = [
        {"text": text, "vector": [round(float(x), 5) for x in vector]}
        for text, vector in zip(GOLDEN, vectors, strict=True)
    ]
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in found)
    golden.write_text(f'{{"model": "{about["name"]}", "cases": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
