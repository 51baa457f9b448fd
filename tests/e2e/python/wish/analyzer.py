from claude_agent_test.sandbox import CommandAnalyzer, SecurityConfig

config = SecurityConfig(
    command_blacklist=[
        r"rm\s+-rf",
        r"sudo",
    ]
)

analyzer = CommandAnalyzer(config)

violations = analyzer.analyze("rm -rf /")
for v in violations:
    print(f"violation: {v.description} (risk: {v.risk_level})")

is_safe, reason = analyzer.is_safe("ls -la")
print(f"safe: {is_safe}, reason: {reason}")
