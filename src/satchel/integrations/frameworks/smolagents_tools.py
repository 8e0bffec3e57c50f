"""Satchel's tools for agents of smolagents.

from satchel.integrations.frameworks.smolagents_tools import satchel_tools

agent = CodeAgent(tools=satchel_tools(satchel.open(".")), model=model)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Final

from smolagents import Tool

from satchel.integrations.frameworks.agent_tools import AgentTools

_TYPES: Final = {"str": "string", "int": "integer"}
_ARGUMENT: Final = re.compile(r"^\s*(\w+): (.+)$", re.MULTILINE)


class SatchelTool(Tool):  # type: ignore[misc]  # the package has no types
    """One of the functions as a tool of smolagents."""

    skip_forward_signature_validation = True  # the arguments are those of the function
    output_type = "string"

    def __init__(self, function: Callable[..., str]) -> None:
        about, _, listed = (inspect.getdoc(function) or "").partition("Args:")
        said = dict(_ARGUMENT.findall(listed))
        self.name = function.__name__
        self.description = about.strip()
        self.inputs = {
            name: {"type": _TYPES.get(str(parameter.annotation), "string"), "description": said[name]}
            | ({} if parameter.default is inspect.Parameter.empty else {"nullable": True})
            for name, parameter in inspect.signature(function).parameters.items()
        }
        self.function = function
        super().__init__()

    def forward(self, *given: Any, **named: Any) -> str:
        """The result of the function; arguments that the model leaves out are None."""
        return self.function(*given, **{name: value for name, value in named.items() if value is not None})


def satchel_tools(client: Any, *, token_budget: int = 4_000) -> list[Tool]:
    """The tools over a client: build_context, find and expand."""
    return [SatchelTool(function) for function in AgentTools(client, token_budget).functions]
