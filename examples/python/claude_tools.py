"""Claude on this machine, its hands in a sandbox: the agent's only tools are those of the sandbox. Needs pip install claude-agent-sdk."""
import asyncio
import sys

from claude_agent_sdk import AssistantMessage, TextBlock, query
from cove.sandbox import SandboxConfig, SandboxExecutor


async def main(task: str) -> None:
    async with SandboxExecutor(SandboxConfig()) as executor:
        options = executor.agent_options(system_prompt="You are a coding agent. Work in /workspace.", max_turns=30)
        async for message in query(prompt=task, options=options):
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, TextBlock):
                        print(block.text)


asyncio.run(main(" ".join(sys.argv[1:]) or "Write fizzbuzz in Python, with tests, and run them."))
