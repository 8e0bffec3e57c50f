"""The page embedders: the contract, checkpoints of three families made on the spot, charts found by their words."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from satchel.errors import EmbedderUnavailable, InvalidInput
from satchel.integrations.embedders.page_embedders import (
    MOST_VECTORS,
    MultiVectorPageEmbedder,
    WrittenPageEmbedder,
    decoded,
    regions,
)
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.ports.page_embedder import PageView
from satchel.retrieval.late_interaction import max_sim
from satchel.testing.embedder_contract import PageEmbedderContract, pages

# The model libraries' remarks on each other's versions are not ours.
pytestmark = pytest.mark.filterwarnings("ignore")

WORDS = ("question", ":", "describe", "the", "image", ".", "revenue", "chart", "page", "user", "assistant")


# -- what is written on a page


class TestWrittenPageEmbedder(PageEmbedderContract):
    def make_embedder(self) -> WrittenPageEmbedder:
        return WrittenPageEmbedder(StaticEmbedder())


def ranked(question: str, views: list[PageView]) -> list[int]:
    embedder = WrittenPageEmbedder(StaticEmbedder())
    scores = max_sim(embedder.embed_query(question), embedder.embed_pages(views))
    return [int(i) for i in np.argsort(-scores, kind="stable")]


REPORT = [
    PageView(
        text="To our shareholders\n\nThe year was marked by higher sales in all regions, and by the integration of the"
        " business acquired in March. We thank our employees for their work.\nThe board proposes a dividend of 1.20.",
    ),
    PageView(
        text="Electricity prices\n0\n20\n40\n60\n80\n2016\n2017\n2018\n2019\n2020\nEUR per MWh\nSpot price Austria\n"
        "Futures",
        captions=("Figure 4: Wholesale electricity prices, 2016 to 2020",),
    ),
    PageView(text="Headcount by site\n0\n500\n1000\nGraz\nVienna\nLinz\nFull-time employees\n31 December"),
    PageView(
        text="| | 2019 | 2020 |\n|---|---|---|\n| Trade receivables | 410 | 388 |\n| Inventories | 220 | 241 |\n"
        "| Cash and cash equivalents | 95 | 130 |",
        captions=("Table 7: Current assets",),
    ),
    PageView(text="Notes to the statements\n\nThe accounting policies are those of the preceding year. Leases are"
             " measured at the present value of the lease payments."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("Show me the chart of electricity spot prices", 1),
        ("price per MWh of wholesale power", 1),
        ("how many employees work in Graz and Linz?", 2),
        ("inventories and trade receivables", 3),
        ("which dividend does the board propose?", 0),
        ("lease accounting policy", 4),
    ],
)
def test_a_page_is_found_by_its_axis_labels_its_caption_or_its_lines(question: str, page: int) -> None:
    assert ranked(question, REPORT)[0] == page


def test_a_scan_is_found_by_what_was_read_on_it() -> None:
    scan = PageView(text="lNVOICE No. 2231\nDelivery address\nPayment due within 30 days\nTotal incl. VAT 1,204.00")
    assert ranked("when is the payment of the invoice due", [*REPORT, scan])[0] == len(REPORT)


def test_the_name_says_that_only_writing_is_looked_at() -> None:
    embedder = WrittenPageEmbedder(StaticEmbedder())
    assert embedder.name == f"written/{StaticEmbedder().name}"
    assert not embedder.needs_images


def test_a_long_page_has_at_most_256_vectors_and_keeps_every_word() -> None:
    view = PageView(text="\n".join(f"line{i} of many" for i in range(3_001)), captions=("Figure 1", "Figure 2"))
    parts = regions(view)
    assert len(parts) == MOST_VECTORS
    assert parts[:2] == ["Figure 1", "Figure 2"]
    assert {f"line{i}" for i in range(3_001)} <= set(" ".join(parts).split())
    assert len(WrittenPageEmbedder(StaticEmbedder()).embed_pages([view])[0]) <= MOST_VECTORS


def test_what_only_draws_has_no_vector() -> None:
    assert regions(PageView(text="| a | b |\n|---|:-:|\n\n---\n***\n## Head\n")) == ["a | b", "Head"]


# -- models that look at pictures


def tokenizer(special: tuple[str, ...]) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(("<pad>", "<unk>", "<bos>", "<eos>", *special, "\n", *WORDS))}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", bos_token="<bos>", eos_token="<eos>",
        additional_special_tokens=list(special),
    )  # fmt: skip


SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
SIGLIP = {**SMALL, "model_type": "siglip_vision_model", "image_size": 32, "patch_size": 16}


def col_pali(folder: Path) -> None:
    from transformers import ColPaliConfig, ColPaliForRetrieval, ColPaliProcessor
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    words = tokenizer(("<image>",))
    looks = SiglipImageProcessorPil(size={"height": 32, "width": 32})
    looks.image_seq_length = 4
    processor = ColPaliProcessor(looks, words)
    text = {**SMALL, "model_type": "gemma", "vocab_size": len(words), "num_key_value_heads": 1, "head_dim": 8}
    vlm = {
        "model_type": "paligemma",
        "image_token_index": words.convert_tokens_to_ids("<image>"),
        "projection_dim": 16,
        "hidden_size": 16,
        "text_config": text,
        "vision_config": {**SIGLIP, "projection_dim": 16},
    }
    ColPaliForRetrieval(ColPaliConfig(vlm_config=vlm, embedding_dim=16)).save_pretrained(folder)
    processor.save_pretrained(folder)


def col_qwen2(folder: Path) -> None:
    from transformers import ColQwen2Config, ColQwen2ForRetrieval, ColQwen2Processor
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    special = ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>", "<|endoftext|>", "<|im_start|>",
               "<|im_end|>")  # fmt: skip
    words = tokenizer(special)
    looks = Qwen2VLImageProcessorPil(min_pixels=28 * 28, max_pixels=28 * 28 * 4, patch_size=14, merge_size=2)
    numbers = words.convert_tokens_to_ids(list(special[:4]))
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    rope = {"type": "mrope", "rope_type": "default", "mrope_section": [1, 1, 2]}
    vlm = {
        "model_type": "qwen2_vl",
        **dict(zip(names, numbers, strict=True)),
        "text_config": {**SMALL, "vocab_size": len(words), "num_key_value_heads": 1, "rope_scaling": rope,
                        "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0},
        "vision_config": {"depth": 1, "embed_dim": 16, "num_heads": 2, "hidden_size": 16, "mlp_ratio": 1,
                          "patch_size": 14},
    }  # fmt: skip
    ColQwen2ForRetrieval(ColQwen2Config(vlm_config=vlm, embedding_dim=16)).save_pretrained(folder)
    ColQwen2Processor(looks, words).save_pretrained(folder)


def col_modern_vbert(folder: Path) -> None:
    from transformers import ColModernVBertConfig, ColModernVBertForRetrieval, ColModernVBertProcessor
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

    places = tuple(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7))
    special = ("<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>", "<|begin_of_text|>")
    words = tokenizer((*special, *places))
    looks = Idefics3ImageProcessorPil(size={"longest_edge": 64}, max_image_size={"longest_edge": 32})
    processor = ColModernVBertProcessor(looks, words, image_seq_len=1)
    ends = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
    vlm = {
        "model_type": "modernvbert",
        "image_token_id": words.convert_tokens_to_ids("<image>"),
        "pixel_shuffle_factor": 2,
        "text_config": {**SMALL, **ends, "vocab_size": len(words)},
        "vision_config": SIGLIP,
    }
    ColModernVBertForRetrieval(ColModernVBertConfig(vlm_config=vlm, embedding_dim=16)).save_pretrained(folder)
    processor.save_pretrained(folder)


def saved_by_sentence_transformers(folder: Path) -> None:
    from sentence_transformers import MultiVectorEncoder

    inner = folder / "inner"
    col_pali(inner)
    MultiVectorEncoder(str(inner), device="cpu", local_files_only=True).save(str(folder))


FAMILIES: dict[str, Callable[[Path], None]] = {
    "col_pali": col_pali,
    "col_qwen2": col_qwen2,
    "col_modern_vbert": col_modern_vbert,
    "sentence_transformers": saved_by_sentence_transformers,
}


@pytest.fixture(scope="module", params=FAMILIES)
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    import torch

    folder = tmp_path_factory.mktemp(str(request.param))
    torch.manual_seed(7)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # models this small only wait for each other's threads
    FAMILIES[request.param](folder)
    yield folder
    torch.set_num_threads(threads)


class TestMultiVectorPageEmbedder(PageEmbedderContract):
    @pytest.fixture(autouse=True)
    def _folder(self, checkpoint: Path) -> None:
        self.folder = str(checkpoint)

    def make_embedder(self) -> MultiVectorPageEmbedder:
        return MultiVectorPageEmbedder(self.folder, name="tiny", batch_size=3)

    def test_it_embeds_pages_and_a_question_and_ranks(self) -> None:
        embedder = self.make_embedder()
        assert embedder.needs_images
        assert embedder.dimensions == 16
        assert embedder.name == "multi-vector:tiny"
        seen = embedder.embed_pages(pages())
        asked = embedder.embed_query("revenue chart")
        scores = max_sim(asked, seen)
        naive = [np.clip((asked @ rows.T).max(axis=1), 0, 1).mean() for rows in seen]
        np.testing.assert_allclose(scores, naive, atol=1e-5)
        assert len(set(scores.round(5).tolist())) > 1
        # Asked with a page's own vectors, that page is the best.
        assert [int(np.argmax(max_sim(rows, seen))) for rows in seen] == [0, 1, 2, 3]


def test_a_text_model_is_refused_as_of_another_kind(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    BertModel(BertConfig(vocab_size=32, **SMALL)).save_pretrained(tmp_path)
    with pytest.raises(EmbedderUnavailable, match=r"is not a multi-vector page model.*ColPali") as caught:
        MultiVectorPageEmbedder(str(tmp_path)).embed_query("revenue")
    assert caught.value.name == str(tmp_path)


def test_a_folder_without_a_model_and_one_with_broken_weights_are_errors_that_name_it(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        MultiVectorPageEmbedder(str(tmp_path)).embed_query("revenue")
    col_pali(tmp_path / "broken")
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(EmbedderUnavailable, match=r"broken.*cannot be loaded"):
        MultiVectorPageEmbedder(str(tmp_path / "broken")).embed_query("revenue")


def test_a_name_is_looked_up_in_the_local_cache_only_and_quickly() -> None:
    with pytest.raises(EmbedderUnavailable, match=r"no such folder.*download=True"):
        MultiVectorPageEmbedder("nobody/no-such-model").embed_query("revenue")


def test_code_that_comes_with_a_model_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"model_type": "evil", "architectures": ["ColPaliForRetrieval"], "auto_map": {"AutoConfig": "evil.Evil"}}'
    )
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    with pytest.raises(EmbedderUnavailable):
        MultiVectorPageEmbedder(str(tmp_path)).embed_query("revenue")
    assert not (tmp_path / "ran").exists()


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['transformers'] = None\n"
        "from satchel.integrations.embedders.page_embedders import MultiVectorPageEmbedder\n"
        f"MultiVectorPageEmbedder({str(tmp_path)!r}).embed_query('revenue')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert "EmbedderUnavailable" in done.stderr
    assert "pip install 'satchel[visual]'" in done.stderr


def png_that_claims(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100_000)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        (b"%PDF-1.7", "is not a PNG"),
        (png_that_claims(60_000, 60_000), "at most 64,000,000 pixels"),
        (pages()[0].image[:80], "is incomplete or damaged|is not a PNG"),
        (b"GIF89a" + b"\0" * 50, "is not a PNG"),
    ],
    ids=["pdf", "bomb", "cut", "gif"],
)
def test_a_picture_that_is_none_or_too_large_is_refused(image: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        decoded(image)


def test_pictures_in_other_colours_are_read() -> None:
    from PIL import Image

    for mode in ("L", "LA", "P", "RGBA", "CMYK", "1"):
        kept = io.BytesIO()
        Image.new(mode, (30, 40)).save(kept, "JPEG" if mode == "CMYK" else "PNG")
        assert decoded(kept.getvalue()).mode == "RGB"
