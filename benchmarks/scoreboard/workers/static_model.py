"""Satchel's own static model as a model2vec folder, for peers whose own model is a download.

Runs in a peer's environment (model2vec, tokenizers, numpy): `static_model.py SATCHELS_MODEL OUT`, or, for a model that
is no folder of ours, `static_model.py HUB_ID OUT`, which downloads it. The rows, the
vocabulary and the way an identifier is taken apart are Satchel's; a text's vector is the mean of its rows, as model2vec
makes it, where Satchel weighs a repeated row by the logarithm of its count.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

UNKNOWN = "[UNK]"
BORDERS = (
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"  # parseHTTPHeader
    r"|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])|_+"
)


def convert(source: Path, out: Path) -> None:
    """Write the model to a folder that appears only when it is whole."""
    import numpy as np

    card = json.loads((source / "model.json").read_text())
    rows, dimensions = int(card["rows"]), int(card["dimensions"])
    table = np.fromfile(source / "rows.i8", np.int8).reshape(rows, dimensions).astype(np.float32)
    table *= np.fromfile(source / "scales.f32", "<f4", rows)[:, None]
    table = np.vstack([table, np.zeros((1, dimensions), np.float32)])  # the unknown word
    pieces = (source / "vocabulary.txt").read_text("utf-8").split("\n")[:rows]
    model = import_module("model2vec").StaticModel(table, tokenizer_of([*pieces, UNKNOWN]), normalize=True)
    _save(model, out)


def ignorant(out: Path) -> None:
    """Write a model that gives every text the same vector, for tools that want one where words alone shall count."""
    import numpy as np

    _save(import_module("model2vec").StaticModel(np.ones((1, 1), np.float32), tokenizer_of([UNKNOWN])), out)


def tokenizer_of(pieces: list[str]) -> Any:
    """WordPiece over words that are taken apart as Satchel takes them apart."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = {piece: row for row, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN, max_input_chars_per_word=64))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Replace(Regex(BORDERS), " "),
            normalizers.Lowercase(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("[a-z]+|[0-9]+"), "removed", invert=True)
    return tokenizer


def _save(model: Any, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=out.parent))
    model.save_pretrained(partial)
    try:
        os.rename(partial, out)
    except OSError:  # somebody else was first
        shutil.rmtree(partial)


if __name__ == "__main__":
    if Path(sys.argv[1]).is_dir():
        convert(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        _save(import_module("model2vec").StaticModel.from_pretrained(sys.argv[1]), Path(sys.argv[2]))
