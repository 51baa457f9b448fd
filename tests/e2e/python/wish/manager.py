from claude_agent_test.sandbox import (
    SecurityManager,
    SecurityConfig,
    ToolInput,
)

config = SecurityConfig(
    blocked_tools=["WebFetch"],
    command_blacklist=[r"rm\s+-rf"],
    enable_audit_log=True,
)

manager = SecurityManager(config)

tool_input = ToolInput(
    tool_name="Bash",
    arguments={"command": "ls -la"},
)

is_valid, reason = manager.validate_tool_call(tool_input)
print(f"valid: {is_valid}, reason: {reason}")

violations = manager.get_violations()
stats = manager.get_stats()
print(f"stats: {stats}")
