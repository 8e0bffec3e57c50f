"""Satchel's tools in the loops of real agents, whose model is a script, and the component of Haystack in a pipeline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import satchel
from satchel.integrations.frameworks.agent_tools import AgentTools

QUESTION = "how long does a retry wait"
CODE = 'def delay(attempt):\n    """How long a retry waits."""\n    return min(60, 2**attempt)\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "work"
    folder.mkdir()
    (folder / "retry.py").write_text(CODE)
    (folder / "client.py").write_text("from retry import delay\n\n\ndef fetch():\n    return delay(3)\n")
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[satchel.Satchel]:
    with satchel.open(folder, index_dir=folder.parent / "index") as client:
        yield client


def test_the_tools_answer_within_their_budget_and_say_their_errors(client: satchel.Satchel) -> None:
    tools = AgentTools(client, token_budget=300)
    assert "return min(60, 2**attempt)" in tools.build_context(QUESTION)
    assert satchel.estimate_tokens(tools.build_context(QUESTION)) <= 300
    assert "calls delay" in tools.build_context(
        "what else?",
        diff="--- a/retry.py\n+++ b/retry.py\n@@ -3 +3 @@\n-    return 1\n+    return min(60, 2**attempt)\n",
    )
    assert "client.py" in tools.find("delay", "references")
    assert tools.expand("retry.py:3-3").strip() == "return min(60, 2**attempt)"
    assert tools.expand("nowhere.py").endswith("[unknown-block]")
    assert tools.find("(", "pattern").startswith("Error: what='(': is no regular expression")


def test_an_agent_of_pydantic_ai_asks_and_is_answered(client: satchel.Satchel) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from satchel.integrations.frameworks.pydantic_ai_tools import satchel_toolset

    def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part.content for message in messages for part in message.parts if part.part_kind == "tool-return"]
        if returned:
            return ModelResponse(parts=[TextPart(str(returned[-1]))])
        (tool,) = (tool for tool in info.function_tools if tool.name == "build_context")
        assert (tool.description or "").startswith("Get one text with what answers")
        assert "name symbols" in tool.parameters_json_schema["properties"]["question"]["description"]
        return ModelResponse(parts=[ToolCallPart("build_context", {"question": QUESTION})])

    agent = Agent(FunctionModel(script), toolsets=[satchel_toolset(client)])
    assert "return min(60, 2**attempt)" in asyncio.run(agent.run("?")).output


def test_an_agent_of_openai_asks_and_is_answered(client: satchel.Satchel) -> None:
    from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from satchel.integrations.frameworks.openai_agents_tools import satchel_tools

    set_tracing_disabled(True)

    class Script(Model):
        async def get_response(self, *given: Any, **named: Any) -> ModelResponse:
            items = named.get("input", given[1] if len(given) > 1 else "")
            outputs = [item["output"] for item in items if isinstance(item, dict) and "output" in item]
            if outputs:
                text = ResponseOutputText(text=str(outputs[-1]), type="output_text", annotations=[])
                said = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
                return ModelResponse(output=[said], usage=Usage(), response_id=None)
            arguments = json.dumps({"what": "delay", "kind": "references"})
            call = ResponseFunctionToolCall(arguments=arguments, call_id="c", name="find", type="function_call")
            return ModelResponse(output=[call], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            raise NotImplementedError

    tools = satchel_tools(client)
    assert [tool.name for tool in tools] == ["build_context", "find", "expand"]
    assert "symbol" in tools[1].params_json_schema["properties"]["what"]["description"]
    result = asyncio.run(Runner.run(Agent(name="a", model=Script(), tools=[*tools]), "?"))
    assert "calls: return delay(3)" in result.final_output


def test_an_agent_of_smolagents_asks_and_is_answered(client: satchel.Satchel) -> None:
    from smolagents import ToolCallingAgent
    from smolagents.models import (
        ChatMessage,
        ChatMessageToolCall,
        ChatMessageToolCallFunction,
        MessageRole,
        Model,
    )

    from satchel.integrations.frameworks.smolagents_tools import satchel_tools

    class Script(Model):  # type: ignore[misc]  # the package has no types
        """Asks, and answers with what the tool said."""

        def generate(self, messages: list[Any], **_: Any) -> ChatMessage:
            said = [message for message in messages if message.role == MessageRole.TOOL_RESPONSE]
            name, arguments = "build_context", {"question": QUESTION}
            if said:
                name, arguments = "final_answer", {"answer": str(said[-1].content)}
            function = ChatMessageToolCallFunction(name=name, arguments=arguments)
            call = ChatMessageToolCall(id="c", type="function", function=function)
            return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])

    tools = satchel_tools(client)
    assert tools[0].inputs["diff"]["nullable"] is True
    agent = ToolCallingAgent(tools=tools, model=Script(), max_steps=3, verbosity_level=0)
    assert "return min(60, 2**attempt)" in str(agent.run("?"))


def test_a_pipeline_of_haystack_retrieves_and_is_kept(
    client: satchel.Satchel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from haystack import Pipeline

    from satchel.integrations.frameworks.haystack_retriever import SatchelRetriever

    pipeline = Pipeline()
    pipeline.add_component("retriever", SatchelRetriever(str(folder), satchel.open, top_k=2))
    monkeypatch.setenv("SATCHEL_INDEX_DIR", str(folder.parent / "own-index"))
    # Haystack loads no code but its own unasked.
    kept = Pipeline.loads(pipeline.dumps(), allowed_modules=["satchel"])
    (first, *_) = kept.run({"retriever": {"query": QUESTION}})["retriever"]["documents"]
    assert (first.meta["file_path"], first.meta["start_line"]) == ("retry.py", 1)
    assert "min(60" in first.content
    packed = SatchelRetriever(client, token_budget=200).run(QUESTION)["documents"]
    assert packed[0].meta["number"] == 1
    with pytest.raises(TypeError, match="cannot be serialized"):
        SatchelRetriever(client).to_dict()
    with pytest.raises(TypeError, match="needs what opens it"):
        SatchelRetriever("folder")
