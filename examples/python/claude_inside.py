"""Claude Code as a whole in a sandbox that has it installed. The key is a secret of cove: `cove secret set ANTHROPIC_API_KEY api.anthropic.com`."""
import asyncio
import os
import sys

from claude_agent_sdk import AssistantMessage, TextBlock, query
from cove.sandbox import NetworkConfig, SandboxConfig, SandboxExecutor

CONFIG = SandboxConfig(e2b_template=os.environ.get("TEMPLATE"), network=NetworkConfig(enabled=True, allowed_domains=["api.anthropic.com:443"]))


async def main(task: str) -> None:
    async with SandboxExecutor(CONFIG) as executor:
        options = executor.agent_options(inside=True, command=os.environ.get("CLAUDE", "claude").split(), permission_mode="bypassPermissions")
        async for message in query(prompt=task, options=options):
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, TextBlock):
                        print(block.text)


asyncio.run(main(" ".join(sys.argv[1:]) or "Which files are here?"))
