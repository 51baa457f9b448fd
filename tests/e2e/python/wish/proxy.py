from claude_agent_test.sandbox import (
    ToolProxy,
    SandboxConfig,
    create_sandbox_tool_callback,
    E2BSandbox,
)

async def create_sandbox():
    config = SandboxConfig()
    sandbox = E2BSandbox(config)
    await sandbox.connect()
    return sandbox

config = SandboxConfig()
tool_proxy = ToolProxy(config, create_sandbox)

callback = create_sandbox_tool_callback(tool_proxy)

options = ClaudeAgentOptions(can_use_tool=callback)
