from claude_agent_test.sandbox import SandboxConfig

config = SandboxConfig(
    auto_cleanup=True,
    session_timeout_minutes=30,
)
