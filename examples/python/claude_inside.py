"""Claude Code as a whole in a sandbox of the template `claude`. The key is a secret of cove: `cove secret set ANTHROPIC_API_KEY api.anthropic.com`."""
import asyncio
import os
import sys

from claude_agent_sdk import AssistantMessage, TextBlock, query
from cove import AsyncSandbox
from cove.sandbox import claude_inside

LIMITS = {"memory": "2g", "disk": "2g", "pids": 512}
NETWORK = {"allow": ["api.anthropic.com:443"], "secrets": ["ANTHROPIC_API_KEY"]}  # the model's host, and nothing else


async def main(task: str) -> None:
    async with await AsyncSandbox.create(os.environ.get("TEMPLATE", "claude"), timeout=3600, limits=LIMITS, network=NETWORK) as sandbox:
        options = claude_inside(sandbox, permission_mode="bypassPermissions", max_turns=30)
        async for message in query(prompt=task, options=options):
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, TextBlock):
                        print(block.text)


asyncio.run(main(" ".join(sys.argv[1:]) or "Which files are here?"))
