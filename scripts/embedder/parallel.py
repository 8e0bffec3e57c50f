"""Download the packages of ``parallel.tsv`` and cut them into (foreign text, English text) pairs.

Three kinds of files are read: message catalogues (``.mo``), translated pages (manual pages, HTML, Mallard), which are
cut into blocks and paired by order when both languages have the same number of blocks, and dictionaries.
What the packages hold is read, never run. The pairs go to a JSON Lines file: language, source, kind, foreign, english.
"""

import gzip
import html
import io
import json
import re
import struct
import tarfile
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from harvest import Package, _data_of_deb, downloaded, excluded

LANGUAGES = ("de", "fr", "es", "pt", "ru", "zh", "ja", "ko", "ar")
_SPELLINGS = {
    **{code: code for code in LANGUAGES},
    **{"de_DE": "de", "fr_FR": "fr", "es_ES": "es", "pt_BR": "pt", "pt-BR": "pt", "ru_RU": "ru", "zh_CN": "zh"},
    **{"zh-CN": "zh", "zh_Hans": "zh", "ja_JP": "ja", "ko_KR": "ko", "ar_SA": "ar", "de-DE": "de", "fr-FR": "fr"},
    **{"es-ES": "es", "ru-RU": "ru", "ja-JP": "ja", "ko-KR": "ko", "ar-MA": "ar", "ar-EG": "ar"},
    **{"C": "en", "en": "en", "en-US": "en", "en_US": "en"},
}
"""Folder names of a language."""
SHORTEST, LONGEST = 3, 900
"""Letters of the English side: shorter texts say nothing, longer ones repeat themselves."""
FARTHEST_LENGTHS = 5.0
"""A text and its translation differ in length by less than this factor; more is a wrong pair."""
DICTIONARY_ENTRIES = 60_000
"""At most so many from one dictionary: the largest has half a million, mostly rare compounds."""
_LETTERS = {
    "ru": r"[а-яё]",
    "zh": r"[\u4e00-\u9fff]",
    "ja": r"[\u3040-\u30ff\u4e00-\u9fff]",
    "ko": r"[\uac00-\ud7af]",
    "ar": r"[\u0620-\u064a]",
}
_MESSAGES = re.compile(r"/([A-Za-z_-]+)/LC_MESSAGES/[^/]+\.mo$")
_PAGE = re.compile(
    r"(?P<before>usr/share/(?:libreoffice/help|gimp/2\.0/help|help|doc/debian-handbook/html)/)(?P<language>[^/]+)"
    r"(?P<after>/.+\.(?:html|page))$"
)
_MANUAL = re.compile(r"usr/share/man/(?:(?P<language>[a-zA-Z_]+)(?:\.UTF-8)?/)?(?P<page>man\d/[^/]+)\.gz$")
_BLOCK_TAG = re.compile(
    r"</?(?:p|h\d|li|td|th|dt|dd|div|title|item|desc|pre|code|screen|tr|table|br|info)\b[^>]*>", re.I
)
_HIDDEN = re.compile(r"<(script|style|head)\b.*?</\1>|<!--.*?-->", re.S | re.I)
_TAG = re.compile(r"<[^<>]{1,300}>")
_NEW_BLOCK = re.compile(r"\.(?:SH|SS|PP|P|TP|IP|LP|TQ|HP|RS|RE|TH|nf|fi|br|sp|EX|EE)\b ?(.*)")
_FONT = re.compile(r"\\f(?:\[[A-Z]*\]|\(..|.)|\\[&|^]|\\s[+-]?\d")
_FORMAT = re.compile(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]|%\d+|\{\w*\}|\$\{?\w+\}?")
_ACCELERATOR = re.compile(r"\([&_]\w\)|(?<!\w)[&_~](?=\w)|(?<=\w)[&~](?=\w)")
_ASIDE = re.compile(r"<[^>]*>|\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|/[^/]*/")


class Translation(NamedTuple):
    """A text and what it says in English."""

    language: str
    source: str
    kind: str
    foreign: str
    english: str


def entries_of(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Path and content of every file of a .deb, a wheel or an sdist that pairs can come from."""
    content = archive.read_bytes()
    if content[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(content)) as zipped:
            for name in zipped.namelist():
                if _wanted(name):
                    yield name, zipped.read(name)
        return
    content = _data_of_deb(content) if content.startswith(b"!<arch>") else content
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            if member.isfile() and _wanted(member.name):
                data = tar.extractfile(member)
                assert data is not None
                yield member.name, data.read()


def _wanted(path: str) -> bool:
    if excluded(path):
        return False
    if found := _MESSAGES.search(path):
        return _SPELLINGS.get(found[1], "en") != "en"
    if found := _PAGE.search(path):
        return found["language"] in _SPELLINGS
    if found := _MANUAL.search(path):
        return (found["language"] or "en") in _SPELLINGS
    return bool(re.search(r"dictd/.*\.(index|dict\.dz)$|edict/(edict|compdic)$|cedict.*\.gz$", path))


def messages(content: bytes) -> Iterator[tuple[str, str]]:
    """English and translation of every message of a gettext catalogue."""
    order = "<" if content[:4] == b"\xde\x12\x04\x95" else ">"
    count, ids, texts = struct.unpack_from(order + "8x3I", content)
    for i in range(count):
        pair = []
        for table in (ids, texts):
            length, start = struct.unpack_from(order + "2I", content, table + 8 * i)
            pair.append(content[start : start + length].decode("utf-8", "ignore"))
        english, foreign = pair
        if english:
            yield english.rsplit("\x04", 1)[-1].split("\0")[0], foreign.split("\0")[0]


def page_blocks(text: str) -> list[str]:
    """The text of an HTML or Mallard page, a string for each block."""
    return [_TAG.sub(" ", block) for block in _BLOCK_TAG.split(_HIDDEN.sub(" ", text))]


def manual_blocks(text: str) -> list[str]:
    """The text of a manual page, a string for each paragraph or heading."""
    blocks, lines = [], list[str]()
    for line in text.splitlines():
        if line.startswith(('.\\"', "'\\\"")):
            continue
        if starts := _NEW_BLOCK.match(line):
            blocks.append(" ".join(lines))
            lines = [starts[1]]
        else:
            lines.append(re.sub(r"^\.[A-Za-z]+ ?", "", line))
    plain = (_FONT.sub("", block).replace("\\-", "-").replace("\\(aq", "'") for block in [*blocks, " ".join(lines)])
    return [block.replace("\\", "") for block in plain]


def dictionary(index: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Headword and translation of every sense in a dictd dictionary."""
    digits = {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}
    for line in index.splitlines():
        head, *place = line.split("\t")
        if head.startswith("00database") or len(head.split()) > 3 or len(place) < 2:
            continue
        start, length = (sum(digits[c] * 64**i for i, c in enumerate(reversed(number))) for number in place[:2])
        for sense in content[start : start + length].decode("utf-8", "ignore").split("\n")[1:6]:
            if not re.match(r'\s*(see|Note|Synonym|Antonym|")|\s{4}', sense):
                yield head, re.sub(r"^\s*\d+\.", "", sense)


def glosses(text: str) -> Iterator[tuple[str, str]]:
    """Word and English glosses of every entry in the EDICT and CEDICT formats."""
    for line in text.splitlines():
        head, _, rest = line.partition("/")
        if not line.startswith("#") and rest:
            written = re.sub(r"\[.*", "", head).split()
            senses = [gloss for gloss in rest.split("/") if gloss and not re.match(r"Ent[A-Z]|CL:|\(P\)", gloss)]
            if written and senses:
                yield re.sub(r"\(.*?\)", "", written[-1].split(";")[0]), ", ".join(senses[:3])


def translations(package: Package, archive: Path, pages: dict[str, dict[str, list[str]]]) -> Iterator[Translation]:
    """The pairs of one package; pages are collected, because their English stands in another package."""
    files = dict[str, bytes]()
    for path, content in entries_of(archive):
        if found := _MESSAGES.search(path):
            for english, foreign in messages(content):
                yield Translation(_SPELLINGS[found[1]], package.name, "message", foreign, english)
        elif found := _PAGE.search(path):
            page = f"{found['before']}*{found['after']}".replace(found["language"], "*")
            pages[page][_SPELLINGS[found["language"]]] = page_blocks(content.decode("utf-8", "ignore"))
        elif found := _MANUAL.search(path):
            text = gzip.decompress(content).decode("utf-8", "ignore")
            pages[found["page"]][_SPELLINGS[found["language"] or "en"]] = manual_blocks(text)
        else:
            files[path] = content
    yield from _dictionaries(package, files)


def _dictionaries(package: Package, files: dict[str, bytes]) -> Iterator[Translation]:
    codes = {"deu": "de", "fra": "fr", "spa": "es", "por": "pt", "rus": "ru", "jpn": "ja", "ara": "ar", "eng": "en"}
    for path, content in files.items():
        pairs: list[tuple[str, str]] = []
        language = "ja" if "edict/" in path and "cedict" not in path else "zh"
        if path.endswith(".index"):
            first, second = (codes[code] for code in _codes_in(path))
            language = second if first == "en" else first
            text = zlib.decompress(files[path.replace(".index", ".dict.dz")], 31)
            pairs = list(dictionary(content.decode("utf-8", "ignore"), text))
            pairs = [(sense, head) for head, sense in pairs] if first == "en" else pairs
        elif not path.endswith(".dz"):
            raw = gzip.decompress(content) if path.endswith(".gz") else content
            pairs = list(glosses(raw.decode("utf-8" if language == "zh" else "euc-jp", "ignore")))
            if path.endswith("/edict"):
                pairs = [pair for pair in pairs if "(P)" in pair[1]] or pairs
        Random(0).shuffle(pairs)
        for foreign, english in pairs[:DICTIONARY_ENTRIES]:
            plain = (_ASIDE.sub(" ", text).strip(" ,;.") for text in (foreign, english))
            yield Translation(language, package.name, "dictionary", *plain)


def _codes_in(path: str) -> list[str]:
    return re.findall(r"-([a-z]{3})-([a-z]{3})\.index$", path)[0]


def paired_pages(pages: dict[str, dict[str, list[str]]]) -> Iterator[Translation]:
    """Blocks of translated pages beside the English blocks, where both pages have the same number."""
    for page, texts in pages.items():
        english = texts.pop("en", [])
        source = "debian-handbook" if "debian-handbook" in page else page.split("/")[0] if "/" in page else page
        for language, blocks in texts.items():
            if len(blocks) == len(english):
                for foreign, original in zip(blocks, english, strict=True):
                    yield Translation(language, source, "page", foreign, original)


def cleaned(pair: Translation) -> Translation | None:
    """The pair without markup and placeholders; None if it cannot be a translation."""
    sides = []
    for text in (pair.foreign, pair.english):
        plain = html.unescape(_TAG.sub(" ", text))
        plain = _ACCELERATOR.sub("", _FORMAT.sub(" ", plain)).replace("…", " ")
        sides.append(re.sub(r"\s+", " ", plain).strip())
    foreign, english = sides
    letters = sum(map(str.isalpha, english))
    wrong_script = pair.language in _LETTERS and not re.search(_LETTERS[pair.language], foreign.lower())
    if letters < SHORTEST or len(english) > LONGEST or foreign == english or wrong_script:
        return None
    stretch = 0.4 if pair.language in {"zh", "ja", "ko"} else 1.0  # these write a word with fewer letters
    ratio = len(foreign) / (len(english) * stretch)
    if not 1 / FARTHEST_LENGTHS < ratio < FARTHEST_LENGTHS:
        return None
    return pair._replace(foreign=foreign, english=english)


def main() -> None:
    """Write the pairs of every package of the table."""
    work, file = downloaded(__doc__, wheels=True)
    pages: dict[str, dict[str, list[str]]] = defaultdict(dict)
    seen: set[tuple[str, str, str]] = set()
    counts, sources = Counter[tuple[str, str]](), Counter[str]()
    with file.open("w", encoding="utf-8") as out:

        def keep(pairs: Iterator[Translation]) -> None:
            for pair in map(cleaned, pairs):
                if pair and (key := (pair.language, pair.foreign, pair.english)) not in seen:
                    seen.add(key)
                    counts[pair.language, pair.kind] += 1
                    sources[pair.source] += 1
                    out.write(json.dumps(pair._asdict(), ensure_ascii=False) + "\n")

        for package, archive in work:
            try:
                keep(translations(package, archive, pages))
            except (OSError, EOFError, ValueError, struct.error, tarfile.TarError, zlib.error) as error:
                print(f"not read: {package.name}: {error}")
        keep(paired_pages(pages))
    print(f"{sum(counts.values())} pairs: {dict(sorted(counts.items()))}")
    print("\n".join(f"{count}\t{source}" for source, count in sources.most_common()))


if __name__ == "__main__":
    main()
