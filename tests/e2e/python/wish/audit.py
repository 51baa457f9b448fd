from claude_agent_test.sandbox import SandboxConfig, SecurityConfig

config = SandboxConfig(
    security=SecurityConfig(
        enable_audit_log=True,
    ),
)

logs = executor.get_audit_logs()
for log in logs:
    if not log["success"]:
        alert(f"failed: {log}")
