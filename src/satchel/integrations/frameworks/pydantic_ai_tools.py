"""Satchel's tools for agents of pydantic-ai.

from satchel.integrations.frameworks.pydantic_ai_tools import satchel_toolset

agent = Agent("openai:gpt-5", toolsets=[satchel_toolset(satchel.open("."))])
"""

from __future__ import annotations

from typing import Any

from pydantic_ai.toolsets import FunctionToolset

from satchel.integrations.frameworks.agent_tools import AgentTools


def satchel_toolset(client: Any, *, token_budget: int = 4_000) -> FunctionToolset[Any]:
    """A toolset over a client: build_context, find and expand."""
    return FunctionToolset(list(AgentTools(client, token_budget).functions), id="satchel")
