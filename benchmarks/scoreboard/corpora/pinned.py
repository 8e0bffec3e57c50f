"""The packages of the docstring questions.

Babel's `_win32.py` holds a function of python-dateutil's, with its docstring. Of the 240 questions that were chosen
first it was the only one that is among the 625,011 training pairs of the embedding model.
"""

from __future__ import annotations

from typing import Final

from benchmarks.scoreboard.corpora.packages import Package

PACKAGES: Final = (
    Package(
        name="babel",
        version="2.18.0",
        sha256="e2b422b277c2b9a9630c1d7903c2a00d0830c409c59ac8cae9081c92f1aeba35",
        copied=("babel/localtime/_win32.py",),
    ),
    Package(name="bokeh", version="3.9.2", sha256="448e07d5ee78231f5bdece3be020024bb98696c0d6b127e0e2df0b8ba8fa9765"),
    Package(name="dask", version="2026.8.0", sha256="ccc0c83a189b0398602435189771d28dad7b5773b6089bb8dce14ae732dd782c"),
    Package(name="docutils", version="0.23", sha256="25d013af9bf23bc1c7b2b093dff4208166c53a94786c9e447808335ef1185fea"),
    Package(
        name="dulwich", version="1.2.21", sha256="31a522b9611e8032a43b8fb6941469c24e65ff4f14e0427986c58e90c22e154f"
    ),
    Package(
        name="ipython", version="9.18.1", sha256="997ce9140d374531a61069c70c0f9ef299d6dd3559ea0f94b8af589726e3c1d5"
    ),
    Package(
        name="librosa", version="0.11.0", sha256="0b6415c4fd68bff4c29288abe67c6d80b587e0e1e2cfb0aad23e4559504a7fa1"
    ),
    Package(name="mkdocs", version="1.6.1", sha256="db91759624d1647f3f34aa0c3f327dd2601beae39a366d6e064c03468d35c20e"),
    Package(name="nltk", version="3.10.4", sha256="769ba5413f265b7d3e87cd163cc28efa01e29eeef8bb6080bc907949d9fcfb51"),
    Package(
        name="paramiko", version="5.1.0", sha256="d9fe6d67a9d0bbf3eb85b051d26ab850b678c02d060f32915b944e5ca6d0d9e1"
    ),
    Package(name="pypdf", version="7.0.1", sha256="6131b764b046282357037309e7ef2a1b7679d4a5c53eed3db2bfbf7c673ddc2b"),
    Package(
        name="sqlglot", version="30.30.0", sha256="06c4c212a7868c7dcff0fd0fda348dd3c5cbad40137b3083a70ecdfe22921cf9"
    ),
)
