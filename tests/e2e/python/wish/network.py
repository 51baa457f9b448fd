from claude_agent_test.sandbox import NetworkConfig, SandboxConfig

config = SandboxConfig(
    network=NetworkConfig(
        enabled=False,
    ),
)
