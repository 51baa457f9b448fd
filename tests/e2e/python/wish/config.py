from claude_agent_test.sandbox import (
    SandboxConfig,
    SandboxType,
    ResourceLimits,
    NetworkConfig,
    SecurityConfig,
)

config = SandboxConfig(
    sandbox_type=SandboxType.E2B,
    e2b_api_key="your-api-key",
    e2b_template="base",
    resource_limits=ResourceLimits(
        cpu_cores=2,
        memory_mb=512,
        disk_mb=1024,
        timeout_seconds=60,
        max_processes=50,
    ),
    network=NetworkConfig(
        enabled=False,
        allowed_domains=[],
    ),
    security=SecurityConfig(
        allowed_tools=[],
        blocked_tools=[],
        command_blacklist=[
            r"rm\s+-rf\s+/",
            r"sudo",
        ],
        enable_audit_log=True,
        allow_root=False,
    ),
    session_timeout_minutes=60,
    auto_cleanup=True,
    working_directory="/workspace",
)
print(config.resource_limits.max_processes)
