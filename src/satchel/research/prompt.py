"""What a model is told before it answers from a context with numbered sources."""

from __future__ import annotations

from importlib import resources
from typing import Final

RESEARCH_SYSTEM_PROMPT: Final = (
    resources.files("satchel.research").joinpath("system_prompt.md").read_text("utf-8").removesuffix("\n")
)
"""Demands a citation for every statement; `verify` then checks what the model made of it."""
