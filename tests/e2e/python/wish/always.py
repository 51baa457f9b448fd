from claude_agent_test.sandbox import SandboxExecutor

# recommended
async with SandboxExecutor(config) as executor:
    result = await executor.execute_bash(command)
print(result.output)
