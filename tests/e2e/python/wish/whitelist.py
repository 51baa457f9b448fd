from claude_agent_test.sandbox import SandboxConfig, SecurityConfig

config = SandboxConfig(
    security=SecurityConfig(
        command_whitelist=[
            "ls",
            "cat",
            "echo",
            "python",
        ],
    ),
)
