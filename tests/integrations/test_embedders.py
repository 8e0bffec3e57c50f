"""The embedders and the cross-encoder: real models made on the spot, and a real endpoint that misbehaves on request."""

from __future__ import annotations

import hashlib
import json
import math
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from email.utils import formatdate
from functools import lru_cache
from pathlib import Path
from shutil import copytree
from typing import Any, ClassVar

import numpy as np
import pytest

from satchel import ContextBuildOptions, KnowledgeChunk, assemble
from satchel.errors import EmbedderMismatch, EmbedderUnavailable, InvalidOption
from satchel.integrations.embedders.model_embedders import (
    FastembedEmbedder,
    SentenceTransformersCrossEncoder,
    SentenceTransformersEmbedder,
)
from satchel.integrations.embedders.openai_embedder import OpenAIEmbedder
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.options import RerankingStrategy
from satchel.service.factory.opening import open_engine
from satchel.testing.embedder_contract import EmbedderContract, check_vectors
from tests.support.endpoint import Answer, Endpoint, serving
from tests.support.places import TESTS
from tests.support.waiting import HANG_SECONDS

GOLDEN = TESTS / "data" / "static_embedder_golden.json"
MODEL = Path(sys.modules[StaticEmbedder.__module__].__file__ or "").parent / "static_model"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("retry", "backoff", "login", "page", "the", "def", "class", "select", "where"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
]
KEY = "sk-very-secret-key-0123456789"


# -- the model in the wheel


class TestStaticEmbedder(EmbedderContract):
    def make_embedder(self) -> StaticEmbedder:
        return StaticEmbedder()


def test_the_static_model_gives_the_vectors_that_its_training_gave() -> None:
    golden = json.loads(GOLDEN.read_bytes())
    embedder = StaticEmbedder()
    assert embedder.name == golden["model"]
    assert len(golden["cases"]) == 24
    vectors = embedder.embed_texts([case["text"] for case in golden["cases"]])
    np.testing.assert_allclose(vectors, [case["vector"] for case in golden["cases"]], atol=1e-3)


@pytest.mark.parametrize(
    "question",
    [
        "Wie wird eine fehlgeschlagene Verbindung wiederholt?",
        "comment réessayer une connexion qui a échoué",
        "cómo se reintenta una conexión fallida",
        "como repetir uma conexão que falhou",
        "как повторить неудачное соединение",
        "连接失败后如何重试",
        "失敗した接続を再試行する方法",
        "실패한 연결을 다시 시도하는 방법",
        "كيف تتم إعادة محاولة الاتصال الفاشل",
    ],
)
def test_a_question_in_another_language_is_near_the_english_text_that_answers_it(question: str) -> None:
    answer, *others = (
        "def retry_connection(attempts): connect again after the connection failed",
        "def parse_date(text): year, month and day of a calendar date",
        "def draw_circle(canvas, colour): paint a filled circle on the picture",
        "def hash_password(password): encrypt the secret of the user",
    )
    embedder = StaticEmbedder()
    cosines = embedder.embed_texts([answer, *others]) @ embedder.embed_query(question)
    assert cosines[0] > 0.2
    assert cosines[0] > cosines[1:].max() + 0.1


def test_letters_that_the_static_model_does_not_know_are_passed_over() -> None:
    embedder = StaticEmbedder()
    np.testing.assert_allclose(embedder.embed_query("ꯀꯁ数据ꯂ"), embedder.embed_query("数据"), atol=1e-6)


def test_the_static_models_files_are_those_of_its_card_and_small() -> None:
    card = json.loads((MODEL / "model.json").read_bytes())
    for name, digest in card["sha256"].items():
        assert hashlib.sha256((MODEL / name).read_bytes()).hexdigest() == digest, name
    files = [path for path in MODEL.rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"model.json", *card["sha256"]}
    assert sum(path.stat().st_size for path in files) < 20_000_000


def test_a_text_without_a_known_word_has_a_row_of_zeros() -> None:
    vectors = StaticEmbedder().embed_texts(["", "…", "ፈልግ", "retry"])
    assert not vectors[:3].any()
    assert vectors[3].any()


def test_many_texts_at_once_are_those_texts_one_by_one() -> None:
    embedder = StaticEmbedder()
    texts = [f"retry number {i} of the login page " * (i % 7) * 40 for i in range(400)]
    together = embedder.embed_texts(texts)
    np.testing.assert_allclose(together, [embedder.embed_query(text) for text in texts], atol=1e-5)


def broken_card(folder: Path) -> None:
    (folder / "model.json").write_text("[]")


def lost_name(folder: Path) -> None:
    (folder / "model.json").write_text('{"dimensions": 256}')


def lost_rows(folder: Path) -> None:
    (folder / "rows.i8").unlink()


def short_rows(folder: Path) -> None:
    (folder / "rows.i8").write_bytes(b"\x01" * 1000)


def short_scales(folder: Path) -> None:
    (folder / "scales.f32").write_bytes(b"\x00" * 400)


def lost_vocabulary(folder: Path) -> None:
    (folder / "vocabulary.txt").unlink()


@pytest.mark.parametrize(
    "harm",
    [broken_card, lost_name, lost_rows, short_rows, short_scales, lost_vocabulary],
    ids=lambda harm: harm.__name__,
)
def test_a_static_model_with_a_broken_file_is_an_error_that_names_the_folder(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    folder = tmp_path / "model"
    copytree(MODEL, folder)
    harm(folder)
    with pytest.raises(EmbedderUnavailable, match="cannot be read") as caught:
        StaticEmbedder(folder).embed_query("retry")
    assert caught.value.name == str(folder)


def test_a_static_model_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"model\.json"):
        StaticEmbedder(tmp_path / "nowhere")


# -- sentence-transformers


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    return folder


class TestSentenceTransformersEmbedder(EmbedderContract):
    folder: ClassVar[Path]

    @pytest.fixture(autouse=True)
    def _model(self, bert_folder: Path) -> None:
        type(self).folder = bert_folder

    def make_embedder(self) -> SentenceTransformersEmbedder:
        return SentenceTransformersEmbedder(str(self.folder))


def test_a_sentence_transformer_of_your_own_needs_a_name_and_has_the_same_vectors(bert_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(bert_folder))
    with pytest.raises(InvalidOption, match="name the model"):
        SentenceTransformersEmbedder(model)
    own = SentenceTransformersEmbedder(model, name="tiny")
    assert own.name == "sentence-transformers:tiny"
    by_folder = SentenceTransformersEmbedder(str(bert_folder))
    assert by_folder.name == f"sentence-transformers:{bert_folder}"
    np.testing.assert_allclose(own.embed_query("retry"), by_folder.embed_query("retry"), atol=1e-6)


def test_the_prompts_of_a_sentence_transformer_are_used(bert_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(bert_folder), prompts={"query": "select where ", "document": "the page "})
    prompted = SentenceTransformersEmbedder(model, name="prompted")
    plain = SentenceTransformersEmbedder(str(bert_folder))
    np.testing.assert_allclose(prompted.embed_query("retry"), plain.embed_query("select where retry"), atol=1e-5)
    np.testing.assert_allclose(prompted.embed_texts(["retry"]), plain.embed_texts(["the page retry"]), atol=1e-5)


def test_a_sentence_transformer_that_cannot_be_loaded_is_an_error_that_names_it(
    tmp_path: Path, bert_folder: Path
) -> None:
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        SentenceTransformersEmbedder(str(tmp_path / "nowhere")).embed_query("retry")
    broken = tmp_path / "broken"
    copytree(bert_folder, broken)
    (broken / "model.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded") as caught:
        SentenceTransformersEmbedder(str(broken)).embed_query("retry")
    assert caught.value.name == str(broken)


# -- fastembed


@pytest.fixture(scope="module")
def onnx_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one layer, a table of random rows, in the files that fastembed expects."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder = tmp_path_factory.mktemp("cache") / "tiny"
    folder.mkdir()
    table = np.random.default_rng(0).normal(size=(len(VOCABULARY), 16)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "m"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["n", "m", 16])],
        [numpy_helper.from_array(table, "table")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 64, "pad_token": "[PAD]"}')
    (folder / "special_tokens_map.json").write_text('{"unk_token": "[UNK]", "pad_token": "[PAD]"}')
    (folder / "config.json").write_text('{"pad_token_id": 0}')
    return folder


@lru_cache(maxsize=1)
def register_with_fastembed() -> None:
    """`satchel-tests/tiny` has an address that nothing listens at: only what is in the cache can be loaded."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    for name in ("satchel-tests/tiny", "satchel-tests/lost"):
        TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType.MEAN,
            normalization=False,
            sources=ModelSource(url="http://127.0.0.1:9/never"),
            dim=16,
            model_file="model.onnx",
        )


@pytest.fixture
def fastembed_cache(onnx_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(onnx_folder.parent))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    register_with_fastembed()
    return onnx_folder.parent


@pytest.mark.usefixtures("fastembed_cache")
class TestFastembedEmbedder(EmbedderContract):
    def make_embedder(self) -> FastembedEmbedder:
        return FastembedEmbedder("satchel-tests/tiny")


@pytest.mark.usefixtures("fastembed_cache")
def test_a_fastembed_model_of_your_own_keeps_its_name_and_its_vectors(onnx_folder: Path) -> None:
    from fastembed import TextEmbedding

    model = TextEmbedding("satchel-tests/tiny", specific_model_path=str(onnx_folder))
    own = FastembedEmbedder(model)
    assert own.name == FastembedEmbedder("satchel-tests/tiny").name == "fastembed:satchel-tests/tiny"
    assert FastembedEmbedder(model, name="mine").name == "fastembed:mine"
    by_name = FastembedEmbedder("satchel-tests/tiny").embed_texts(["retry the page"])
    np.testing.assert_allclose(own.embed_texts(["retry the page"]), by_name, atol=1e-6)
    renamed = FastembedEmbedder("satchel-tests/tiny", name="mine")
    assert renamed.name == "fastembed:mine"
    np.testing.assert_allclose(renamed.embed_texts(["retry the page"]), by_name, atol=1e-6)


def test_a_nameless_model_in_place_of_fastembeds_needs_a_name() -> None:
    with pytest.raises(InvalidOption, match="name the model"):
        FastembedEmbedder(object())


def test_a_fastembed_model_that_cannot_be_loaded_is_an_error_that_names_it(
    fastembed_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        FastembedEmbedder("satchel-tests/never-heard-of").embed_query("retry")
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        FastembedEmbedder("satchel-tests/lost").embed_query("retry")
    copytree(fastembed_cache / "tiny", tmp_path / "tiny")
    (tmp_path / "tiny" / "model.onnx").write_bytes(b"not a model")
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded") as caught:
        FastembedEmbedder("satchel-tests/tiny").embed_query("retry")
    assert caught.value.name == "satchel-tests/tiny"


# -- an OpenAI-compatible endpoint


def vector_of(text: str) -> list[float]:
    """A place for each word, by its hash; the words for a vehicle share one."""
    vector = [0.0] * 64
    for word in re.findall(r"[a-z]+", text.lower()) or ["nothing"]:
        meant = "vehicle" if word in {"automobile", "car", "truck"} else word
        vector[hashlib.blake2b(meant.encode(), digest_size=1).digest()[0] % 64] += 3.0
    return vector


def rows_of(vectors: list[Any], places: list[Any] | None = None) -> bytes:
    places = places if places is not None else list(range(len(vectors)))
    data = [{"index": place, "embedding": vector} for place, vector in zip(places, vectors, strict=True)]
    return json.dumps({"object": "list", "data": data}).encode()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(lambda asked: rows_of([vector_of(text) for text in asked["input"]])) as server:
        yield server


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def ask(endpoint: Endpoint, waits: list[float]) -> Callable[..., OpenAIEmbedder]:
    """An embedder for the endpoint, which writes down how long it would have slept."""

    def make(**changed: Any) -> OpenAIEmbedder:
        return OpenAIEmbedder("tiny", **{"url": endpoint.url, "key": KEY, "sleep": waits.append, **changed})

    return make


class TestOpenAIEmbedder(EmbedderContract):
    url: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _endpoint(self, endpoint: Endpoint) -> None:
        type(self).url = endpoint.url

    def make_embedder(self) -> OpenAIEmbedder:
        return OpenAIEmbedder("tiny", url=self.url, tries=1)


def test_the_request_is_that_of_the_protocol(endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]) -> None:
    vectors = ask().embed_texts(["retry", "page"])
    assert endpoint.paths == ["/v1/embeddings"]
    assert endpoint.bodies == [{"model": "tiny", "input": ["retry", "page"], "encoding_format": "float"}]
    assert endpoint.keys == [f"Bearer {KEY}"]
    expected = np.array([vector_of("retry"), vector_of("page")])
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


def test_without_a_key_none_is_sent(endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]) -> None:
    ask(key="").embed_query("retry")
    assert endpoint.keys == [None]


def test_a_key_is_sent_without_the_line_break_of_its_file(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]
) -> None:
    ask(key=f"{KEY}\n").embed_query("retry")
    assert endpoint.keys == [f"Bearer {KEY}"]


def test_texts_go_out_in_batches_and_come_back_in_order(endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]) -> None:
    texts = [f"{LETTERS[i % 26]} {LETTERS[i // 26]}" for i in range(300)]
    vectors = ask().embed_texts(texts)
    assert endpoint.sizes == [128, 128, 44]
    assert [text for body in endpoint.bodies for text in body["input"]] == texts
    check_vectors(vectors, 300, 64)
    np.testing.assert_allclose(vectors[[0, 127, 128, 299]], [ask().embed_query(texts[i]) for i in (0, 127, 128, 299)])
    endpoint.bodies.clear()
    ask(batch_size=2).embed_texts(texts[:4])
    assert endpoint.sizes == [2, 2]


def test_long_texts_are_cut_and_no_request_grows_beyond_what_endpoints_take(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]
) -> None:
    vectors = ask().embed_texts(["x" * 100_000] * 60)
    assert len(vectors) == 60
    assert endpoint.sizes == [25, 25, 10]
    assert {len(text) for body in endpoint.bodies for text in body["input"]} == {24_000}
    endpoint.bodies.clear()
    ask(max_chars=5).embed_query("retry the page")
    assert endpoint.bodies[0]["input"] == ["retry"]


def test_no_empty_text_is_sent_which_openai_refuses(endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]) -> None:
    ask().embed_texts(["", "retry"])
    assert endpoint.bodies[0]["input"] == [" ", "retry"]


def test_no_texts_need_no_request_once_the_length_is_known(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]
) -> None:
    embedder = ask()
    assert embedder.embed_texts([]).shape == (0, 64)
    assert len(endpoint.bodies) == 1
    assert embedder.embed_texts([]).shape == (0, 64)
    assert embedder.dimensions == 64
    assert len(endpoint.bodies) == 1


def test_a_busy_endpoint_is_asked_again_no_sooner_than_it_says(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float]
) -> None:
    endpoint.answers += [Answer(429, b"slow down", {"Retry-After": "7"})]
    check_vectors(ask().embed_texts(["retry"]), 1, 64)
    assert waits == [7.0]
    assert len(endpoint.bodies) == 2


def test_retry_after_may_be_a_date(endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float]) -> None:
    endpoint.answers += [Answer(503, b"", {"Retry-After": formatdate(time.time() + 30, usegmt=True)})]
    ask().embed_query("retry")
    assert len(waits) == 1
    assert 20 < waits[0] <= 30


_FAR_AWAY = formatdate(time.time() + 9_000_000, usegmt=True)


@pytest.mark.parametrize("said", ["86400", "inf", _FAR_AWAY], ids=["seconds", "for ever", "a date"])
def test_nobody_waits_longer_than_a_minute(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float], said: str
) -> None:
    endpoint.answers += [Answer(429, b"", {"Retry-After": said})]
    ask().embed_query("retry")
    assert waits == [60.0]


@pytest.mark.parametrize("said", ["soon", "-5", "nan", "Mon, 99 Foo 2020", formatdate(0, usegmt=True)])
def test_a_retry_after_that_says_nothing_is_a_short_wait(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float], said: str
) -> None:
    endpoint.answers += [Answer(429, b"", {"Retry-After": said})]
    ask().embed_query("retry")
    assert len(waits) == 1
    assert 0.25 <= waits[0] <= 0.5


def test_a_failing_endpoint_is_asked_again_later_and_later(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float]
) -> None:
    endpoint.answers += [Answer(500, b"oh"), Answer(500, b"oh")]
    check_vectors(ask().embed_texts(["retry"]), 1, 64)
    assert len(waits) == 2
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1.0
    assert len(endpoint.bodies) == 3
    assert endpoint.bodies[0] == endpoint.bodies[2]


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_what_may_get_better_is_tried_again_until_patience_ends(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float], status: int
) -> None:
    endpoint.answers += [Answer(status, b"not now")] * 3
    with pytest.raises(EmbedderUnavailable, match=rf"answered {status}: not now \(after 3 tries\)"):
        ask(tries=3).embed_query("retry")
    assert len(endpoint.bodies) == 3
    assert len(waits) == 2


@pytest.mark.parametrize(
    ("status", "hint"), [(400, "too long"), (401, "SATCHEL_EMBEDDER_KEY"), (403, "may this key"), (404, "/v1")]
)
def test_what_cannot_get_better_is_an_error_at_once_that_says_what_to_do(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float], status: int, hint: str
) -> None:
    endpoint.answers += [Answer(status, b'{"error": {"message": "too long"}}')]
    with pytest.raises(EmbedderUnavailable, match=f"answered {status}") as caught:
        ask().embed_query("retry")
    assert "too long" in str(caught.value)
    assert hint in str(caught.value)
    assert caught.value.name == "tiny"
    assert len(endpoint.bodies) == 1
    assert waits == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_error_says_where_it_led(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], status: int
) -> None:
    endpoint.answers += [Answer(status, b"", {"Location": f"{endpoint.url}/elsewhere"})]
    with pytest.raises(EmbedderUnavailable, match="which is not followed") as caught:
        ask().embed_query("retry")
    assert f"{endpoint.url}/elsewhere" in str(caught.value)
    assert endpoint.paths == ["/v1/embeddings"]


def test_an_endpoint_that_hangs_is_given_up(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float]
) -> None:
    endpoint.answers += [Answer(hang=True), Answer()]

    def pause(seconds: float) -> None:
        waits.append(seconds)
        embedder._endpoint.client._timeout = HANG_SECONDS  # for the second try, which is answered

    embedder = ask(timeout=0.2, sleep=pause)
    check_vectors(embedder.embed_texts(["retry"]), 1, 64)
    assert len(waits) == 1
    endpoint.answers += [Answer(hang=True), Answer(hang=True)]
    with pytest.raises(EmbedderUnavailable, match=r"cannot be reached: timed out \(after 2 tries\)"):
        ask(timeout=0.2, tries=2).embed_query("retry")


def test_an_endpoint_that_breaks_off_is_asked_again(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float]
) -> None:
    endpoint.answers += [Answer(body=b'{"data": [', announced=5000), Answer(500, b"half a sen", announced=5000)]
    check_vectors(ask().embed_texts(["retry"]), 1, 64)
    assert len(waits) == 2
    endpoint.answers += [Answer(body=b'{"data": [', announced=5000)]
    with pytest.raises(EmbedderUnavailable, match="peer closed connection"):
        ask(tries=1).embed_query("retry")


def test_an_endpoint_that_is_not_there_is_an_error_that_names_the_address(waits: list[float]) -> None:
    closed = Endpoint(lambda _: b"")
    closed.server_close()
    with pytest.raises(EmbedderUnavailable, match=r"refused.*after 4 tries") as caught:
        OpenAIEmbedder("tiny", url=closed.url, tries=4, sleep=waits.append).embed_query("retry")
    assert closed.url in str(caught.value)
    assert len(waits) == 3


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html>hello</html>", "is invalid"),
        (b"", "is invalid"),
        (b"\xff\xfe\x00", "is invalid"),
        (b"[" * 200_000, "is invalid"),
        (b"[]", "is invalid"),
        (b'{"data": null}', "is invalid"),
        (b'{"data": {"0": 1, "1": 2}}', "is invalid"),
        (b'{"data": [1, 2]}', "is invalid"),
        (b'{"error": "no such model"}', "KeyError"),
        (rows_of([[1.0]]), "1 rows for 2 texts"),
        (rows_of([[1.0]] * 3), "3 rows for 2 texts"),
        (rows_of([[1.0], [1.0, 2.0]]), "is invalid"),
        (rows_of([[], []]), r"shape \(2, 0\)"),
        (rows_of([1.0, 2.0]), r"shape \(2,\)"),
        (rows_of([["one"], ["two"]]), "is invalid"),
        (rows_of([[10**400], [1]]), "is invalid"),
        (rows_of([[1.0], [math.nan]]), "NaN"),
        (rows_of([[1.0], [-math.inf]]), "NaN"),
        (rows_of([[1.0], [None]]), "NaN|is invalid"),
        (rows_of([[1.0], [2.0]], places=[0, 7]), r"numbered \[0, 7\]"),
        (rows_of([[1.0], [2.0]], places=[0, "1"]), "is invalid"),
    ],
)
def test_an_answer_that_makes_no_sense_is_an_error_and_no_vector(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], body: bytes, problem: str
) -> None:
    # One more byte, so that an empty body is sent too and not taken for none.
    endpoint.answers += [Answer(body=body + b" ")]
    with pytest.raises(EmbedderUnavailable, match=problem):
        ask().embed_texts(["retry", "page"])
    assert len(endpoint.bodies) == 1


def test_vectors_that_change_their_length_are_an_error(endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]) -> None:
    endpoint.answers += [Answer(), Answer(body=rows_of([[1.0, 2.0]]))]
    with pytest.raises(EmbedderUnavailable, match="vectors of 2 numbers, and of 64 before"):
        ask(batch_size=1).embed_texts(["retry", "page"])


def test_rows_out_of_order_are_put_in_order(endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]) -> None:
    texts = ["retry", "page", "login", "backoff"]
    straight = ask().embed_texts(texts)

    def shuffled(body: dict[str, Any]) -> bytes:
        asked = body["input"]
        places = [2, 0, 3, 1]
        return rows_of([vector_of(asked[place]) for place in places], places)

    endpoint.answers += [Answer(body=shuffled)]
    np.testing.assert_array_equal(ask().embed_texts(texts), straight)


@pytest.mark.parametrize("place", [0, None])
def test_rows_without_numbers_are_taken_as_they_come(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], place: int | None
) -> None:
    straight = ask().embed_texts(["retry", "page"])
    endpoint.answers += [Answer(body=rows_of([vector_of("retry"), vector_of("page")], [place, place]))]
    np.testing.assert_array_equal(ask().embed_texts(["retry", "page"]), straight)


def test_a_row_of_zeros_and_enormous_numbers_are_no_trouble(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]
) -> None:
    endpoint.answers += [Answer(body=rows_of([[0.0, 0.0], [1e39, 1e39]]))]
    np.testing.assert_allclose(ask().embed_texts(["a", "b"]), [[0, 0], [0.5**0.5, 0.5**0.5]], rtol=1e-6)


def test_requests_keep_the_pace_that_is_asked_for(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float]
) -> None:
    ask(batch_size=1, requests_per_minute=30).embed_texts(["a", "b", "c"])
    assert len(endpoint.bodies) == 3
    assert len(waits) == 2
    assert all(1.5 < wait <= 2.0 for wait in waits)
    waits.clear()
    ask(batch_size=1).embed_texts(["a", "b", "c"])
    assert waits == []


def test_the_pace_holds_for_another_try_too(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], waits: list[float]
) -> None:
    endpoint.answers += [Answer(500, b"oh")]
    ask(requests_per_minute=30).embed_query("retry")
    backoff, pace = waits
    assert backoff <= 0.5
    assert 1.5 < pace <= 2.0


ECHO = KEY.encode()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(401, b"Incorrect API key: Bearer " + ECHO),
        Answer(400, b"x" * 480 + ECHO + b" is what you sent"),
        Answer(500, ECHO),
        Answer(429, ECHO * 5000),
        Answer(302, b"", {"Location": f"http://127.0.0.1:9/?key={KEY}"}),
        Answer(200, ECHO),
        Answer(200, rows_of([[KEY]])),
        Answer(200, rows_of([{KEY: 1}])),
    ],
)
def test_the_key_is_in_no_error(endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], answer: Answer) -> None:
    endpoint.answers += [answer]
    with pytest.raises(EmbedderUnavailable) as caught:
        ask(tries=1).embed_query("retry")
    assert endpoint.keys == [f"Bearer {KEY}"]
    told = "".join(traceback.format_exception(caught.value)) + str(vars(caught.value))
    assert "embedder='tiny'" in told
    assert KEY[:12] not in told


@pytest.mark.parametrize("key", [f"{KEY}\nX-Header: 1", f"{KEY}é", f"\x00{KEY}"])
def test_a_key_that_no_header_can_carry_is_an_error_that_does_not_show_it(key: str) -> None:
    with pytest.raises(EmbedderUnavailable, match="copied") as caught:
        OpenAIEmbedder("tiny", key=key)
    assert KEY not in str(caught.value)


def test_what_an_endpoint_says_cannot_steer_the_terminal(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder]
) -> None:
    endpoint.answers += [Answer(400, b"\x1b[2J\x07cleared\r\n" + b"and long " * 1000)]
    with pytest.raises(EmbedderUnavailable, match="cleared") as caught:
        ask().embed_query("retry")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://127.0.0.1/v1", "must begin with https"),
        ("file:///etc/passwd", "must begin with https"),
        ("127.0.0.1:8080", "must begin with https"),
        ("https://", "not a valid URL"),
        ("http://127.0.0.1:port/v1", "not a valid URL"),
        ("http://[::1/v1", "not a valid URL"),
        ("http://127.0.0.1/v1 beta", "not a valid URL"),
        ("http://ann:hunter2@127.0.0.1/v1", "use the key"),
    ],
)
def test_a_url_that_cannot_be_right_is_an_error_before_anything_is_sent(url: str, problem: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=problem) as caught:
        OpenAIEmbedder("tiny", url=url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("option", ["batch_size", "max_chars", "tries"])
def test_a_number_that_cannot_be_right_is_an_error(ask: Callable[..., OpenAIEmbedder], option: str) -> None:
    with pytest.raises(InvalidOption, match=f"{option}=0: must be at least 1"):
        ask(**{option: 0})


# -- an index and its embedder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "parking.md").write_text("# Garage\n\nEvery car has a numbered space under the building.\n")
    (folder / "retry.py").write_text("def backoff(tries: int) -> float:\n    return 0.5 * 2**tries\n")
    (folder / "login.py").write_text("def login(user: str, password: str) -> bool:\n    return check(user, password)\n")
    return folder


def opened(workspace: Path, embedder: Any) -> Any:
    return open_engine(
        workspace, embedder=embedder, index_dir=str(workspace.parent / "index"), history_commits=0, workers=1
    )


def test_a_folder_is_indexed_and_searched_with_an_endpoint(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], workspace: Path
) -> None:
    with opened(workspace, ask()) as engine:
        engine.index()
        sent = "\n".join(text for body in endpoint.bodies for text in body["input"])
        assert "numbered space" in sent
        assert "2**tries" in sent
        assert engine.status().embedder == "openai:tiny"
        assert engine.search("backoff tries").hits[0].path == "retry.py"
        # No word of the question is in any file: only the vectors can know.
        assert engine.search("automobile").hits[0].path == "parking.md"
        requests = len(endpoint.bodies)
        engine.index()
        assert len(endpoint.bodies) == requests, "nothing has changed, and yet texts were sent"


def test_an_index_of_one_embedder_refuses_another(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], workspace: Path
) -> None:
    with opened(workspace, ask()) as engine:
        engine.index()
    with (
        opened(workspace, StaticEmbedder()) as engine,
        pytest.raises(EmbedderMismatch, match="satchel clear") as caught,
    ):
        engine.index()
    assert (caught.value.stored, caught.value.requested) == ("openai:tiny", "satchel-static-2")
    with opened(workspace, ask()) as engine:
        engine.index()
        assert engine.search("backoff").hits[0].path == "retry.py"


def test_an_endpoint_that_fails_while_indexing_leaves_an_index_that_can_be_finished(
    endpoint: Endpoint, ask: Callable[..., OpenAIEmbedder], workspace: Path
) -> None:
    embedder = ask(tries=1)
    assert embedder.dimensions == 64
    endpoint.answers += [Answer(500, b"oh")]
    with opened(workspace, embedder) as engine:
        with pytest.raises(EmbedderUnavailable, match="answered 500"):
            engine.index()
        engine.index()
        assert engine.search("automobile").hits[0].path == "parking.md"


# -- the suite itself


def test_the_contract_catches_an_embedder_that_breaks_it() -> None:
    class Broken(StaticEmbedder):
        def embed_texts(self, texts: Any) -> Any:
            return super().embed_texts(sorted(texts)) * 2

    class Suite(EmbedderContract):
        def make_embedder(self) -> Broken:
            return Broken()

    with pytest.raises(AssertionError, match="neither 1 nor 0"):
        Suite().test_there_is_one_row_of_float32_for_each_text(Broken())
    with pytest.raises(AssertionError, match="turned around"):
        Suite().test_rows_come_in_the_order_of_the_texts(Broken())
    with pytest.raises(NotImplementedError, match="subclass EmbedderContract"):
        EmbedderContract().make_embedder()


def test_the_suite_is_no_part_of_satchel_until_it_is_imported() -> None:
    code = "import sys, satchel.service.factory.opening; assert not {'pytest', 'satchel.testing'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- the cross-encoder of sentence-transformers


@pytest.fixture(scope="module")
def cross_encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("cross-encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "retry", "backoff", "login", "page", "the"]
    (folder / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=1,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore")
def test_a_real_cross_encoder_loads_scores_and_reranks(cross_encoder_folder: Path) -> None:
    encoder = SentenceTransformersCrossEncoder(str(cross_encoder_folder))
    scores = encoder.score("retry backoff", ["the retry", "login page", "the retry"])
    assert all(0 < score < 1 for score in scores)
    assert scores[0] == pytest.approx(scores[2], abs=1e-5)
    assert scores[0] != pytest.approx(scores[1], abs=1e-7)
    assert encoder.score("retry", []) == []
    hits = [KnowledgeChunk("the retry", file_path="a"), KnowledgeChunk("login page", file_path="b")]
    options = ContextBuildOptions(reranking=RerankingStrategy.CROSS_ENCODER)
    result = assemble(hits, options, query="retry backoff", cross_encoder=encoder)
    best = max(result.ledger, key=lambda entry: entry.score)
    assert result.sources[0].entity_id == best.id
