import asyncio
from claude_agent_test.sandbox import SandboxConfig, SandboxExecutor

async def main():
    config = SandboxConfig()

    async with SandboxExecutor(config) as executor:
        result = await executor.execute_bash("echo 'Hello!'")
        print(result.output)

        await executor.write_file("test.txt", "Hello, World!")

        result = await executor.read_file("test.txt")
        print(result.output)

        result = await executor.search_files("Hello", ".")
        print(result.output)

asyncio.run(main())
