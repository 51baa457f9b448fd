import asyncio
from claude_agent_sdk import ClaudeAgentOptions, query, AssistantMessage, TextBlock
from claude_agent_test.sandbox import SandboxConfig, SandboxExecutor

async def main():
    sandbox_config = SandboxConfig()

    async with SandboxExecutor(sandbox_config) as executor:
        tool_callback = executor.get_tool_callback()

        options = ClaudeAgentOptions(
            system_prompt="You are a coding assistant.",
            can_use_tool=tool_callback,
        )

        async for message in query(prompt="run the command ls", options=options):
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, TextBlock):
                        print(block.text)

asyncio.run(main())
