"""Bug reports: the text without the boilerplate of issue templates, and the files of stack traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG: Final = re.compile(r"</?(?:details|summary|img|br|p|div|a|h\d|pre|code|sub|b|i)\b[^<>]{0,500}>", re.IGNORECASE)
# The address says where something is, not what; the title of a link stays.
_URL: Final = re.compile(r"\b(?:https?|ftp|ssh)://[^\s<>()\[\]\"'`]+")
_CHECK_BOX: Final = re.compile(r"^[ \t]*[-*+] \[[ xX]?\].*$", re.MULTILINE)
_NO_RESPONSE: Final = re.compile(r"^[ \t]*(?:_?no response_?|n/?a|none|-)[ \t]*$", re.MULTILINE | re.IGNORECASE)
# Headings of issue templates: the words of the template, not of the reporter.
_HEADING: Final = re.compile(
    r"^(?:#{1,6}|\*\*)[^\w\n]{0,8}(?:"
    r"describe (?:the|your) [\w /]+|(?:a )?clear and concise description[^\n]*|(?:steps|how) to reproduce[^\n]*"
    r"|to reproduce|reproduc\w+[\w ]*|(?:expected|actual|current|observed) (?:behaviou?r|results?|output)[^\n]*"
    r"|what (?:happened|should have happened|did you|do you|version|browsers?|is version|was the last|type of)[^\n]*"
    r"|(?:bug )?description|(?:the )?problem(?: description)?|summary|motivation|additional (?:context|info\w*|notes?)"
    r"|any(?:thing| other)[^\n]*|(?:your |system |software )?(?:environment|system info\w*|versions?|platform)[^\n]*"
    r"|(?:relevant |console |error |full )*logs?(?: output)?|(?:screenshots?|checklist|validations?|system)[^\n]*"
    r"|(?:is there|did|have|do) (?:an|you|this)[^\n]*|code sample[^\n]*|(?:installed|output of) [^\n]*"
    r"|(?:operating system|os|python version|which \w+ version)[^\n]*"
    r")[^\w\n]{0,8}$",
    re.MULTILINE | re.IGNORECASE,
)
# A list of versions: `numpy: 1.11.0`, `- OS: Ubuntu 20.04`, `python-bits: 64`.
_VERSION_LINE: Final = re.compile(
    r"^[ \t*\-]{0,12}[\w .\-()/]{2,40}(?::|==) *(?:v?\d+(?:\.[\w+\-]+)+|none|n/a|\d{1,3}|True|False)[ \t]*$"
    r"|^[ \t*\-]{0,12}(?:os|platform|browser|processor|machine|byteorder|locale|lang|lc_all|commit)\b ?[:=].*$"
    r"|^[ \t*\-]{0,12}(?:gpu|cpu|ram)\b ?[:=].*$",
    re.MULTILINE | re.IGNORECASE,
)

_LINKED_FILE: Final = re.compile(r"://[^\s/]+/[^\s/]+/[^\s/]+/(?:-/)?(?:blob|tree|raw)/[^\s/]+/([^\s#?()\[\]<>\"'`]+)")
_PYTHON_FRAME: Final = re.compile(r"\bFile \"(?P<path>[^\"\n]{1,300})\", line (?P<line>\d+)")
_OTHER_FRAME: Final = re.compile(
    r"(?<![\w./\\@\-])(?P<path>(?:[A-Za-z]:)?[\w./\\@\-]{1,300}\.[A-Za-z]{1,5})"
    r"(?:(?::|#L)(?P<line>\d+)(?::\d+)?| in <?[\w.]+>?\()"
)
_JAVA_FRAME: Final = re.compile(
    r"\bat (?P<package>(?:[a-z_]\w*\.)+)\w[\w.$<>]*\((?P<path>\w+\.(?:java|kt|scala|groovy))(?::(?P<line>\d+))?\)"
)
_MAX_LINE_DIGITS: Final = 9  # more are no line of any file
_MAX_FRAMES: Final = 40  # the innermost of a deep recursion tell where it failed


def without_boilerplate(text: str) -> str:
    """The reporter's own words: no comments, headings, check boxes and version lists of a template, no addresses."""
    for pattern in (_COMMENT, _TAG, _URL, _CHECK_BOX, _NO_RESPONSE, _HEADING, _VERSION_LINE):
        text = pattern.sub(" ", text)
    return text


def linked_files(text: str) -> list[str]:
    """The files of a repository that web addresses in the text point to."""
    return [match[1] for match in _LINKED_FILE.finditer(text)]


class Frame(NamedTuple):
    """A place in a file that a stack trace or a comment names; line 0 where it names only the file."""

    path: str
    line: int


def trace_files(text: str) -> tuple[str, ...]:
    """The files of the stack traces in a text, the innermost frame first, each once, with `/` between folders."""
    return tuple(dict.fromkeys(frame.path for frame in trace_frames(text)))


def trace_frames(text: str) -> tuple[Frame, ...]:
    """The frames of the stack traces in a text, the innermost first, with `/` between folders."""
    return tuple([*_innermost_first(text)][:_MAX_FRAMES])


def _innermost_first(text: str) -> Iterator[Frame]:
    # Python prints the innermost frame last, other languages print it first.
    matches = [*reversed([*_PYTHON_FRAME.finditer(text)]), *_JAVA_FRAME.finditer(text), *_OTHER_FRAME.finditer(text)]
    for match in matches:
        named = match.groupdict("")
        path = named.get("package", "").replace(".", "/") + named["path"].replace("\\", "/")
        yield Frame(path, int(named["line"][:_MAX_LINE_DIGITS] or 0))


_SAME_PARTS: Final = 2  # the name and a folder: a name alone is that of many files


def shared_ending(path: str, elsewhere: str) -> int:
    """How many parts at the end of a path and of a path of another machine are the same; 0 for different files.

    They are the same file if the name and a folder are the same, or all of the shorter path.
    """
    ours, theirs = path.split("/")[::-1], elsewhere.split("/")[::-1]
    pairs = zip(ours, theirs, strict=False)
    same = next((count for count, (own, other) in enumerate(pairs) if own != other), min(len(ours), len(theirs)))
    return same if same >= min(_SAME_PARTS, len(ours), len(theirs)) else 0
