from daytona import AsyncDaytona

async def main():
    async with AsyncDaytona() as daytona:
        sandbox = await daytona.create()

        await sandbox.process.exec("npm install -g @anthropic-ai/claude-code")

        pty = await sandbox.process.create_pty()
        await pty.send(f"ANTHROPIC_API_KEY={api_key} claude --dangerously-skip-permissions --output-format stream-json --verbose 'your prompt here'\n")

        async for data in pty.on_data():
            print(data, end="")

        await daytona.delete(sandbox)
