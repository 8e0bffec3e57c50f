"""How the site of the documentation is made: `make docs`, strictly (every warning is an error)."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "Satchel"
copyright = "the authors of Satchel, Apache-2.0"
release = version = version_of("satchel")

extensions = ["myst_parser"]
exclude_patterns = ["_build", "requirements/README.md"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = "Satchel"
html_copy_source = False
html_show_sourcelink = False
html_static_path: list[str] = []
pygments_style = "friendly"
pygments_dark_style = "monokai"
highlight_language = "text"
