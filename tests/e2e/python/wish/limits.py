from claude_agent_test.sandbox import ResourceLimits, SandboxConfig

config = SandboxConfig(
    resource_limits=ResourceLimits(
        timeout_seconds=30,
        memory_mb=512,
        max_processes=50,
    ),
)
