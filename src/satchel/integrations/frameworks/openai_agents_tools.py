"""Satchel's tools for agents of the OpenAI Agents SDK.

from satchel.integrations.frameworks.openai_agents_tools import satchel_tools

agent = Agent(name="Reviewer", tools=satchel_tools(satchel.open(".")))
"""

from __future__ import annotations

from typing import Any

from agents import FunctionTool, function_tool

from satchel.integrations.frameworks.agent_tools import AgentTools


def satchel_tools(client: Any, *, token_budget: int = 4_000) -> list[FunctionTool]:
    """The tools over a client: build_context, find and expand."""
    return [function_tool(function) for function in AgentTools(client, token_budget).functions]
