import asyncio
from claude_agent_test.sandbox import E2BSandbox, SandboxConfig

async def main():
    config = SandboxConfig(working_directory="/home/user")

    async with E2BSandbox(config) as sandbox:
        result = await sandbox.execute_bash("python --version")
        print(result.output)

        await sandbox.write_file("script.py", "print('Hello!')")
        result = await sandbox.execute_bash("python script.py")
        print(result.output)

asyncio.run(main())
