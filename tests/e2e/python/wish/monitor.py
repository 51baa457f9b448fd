from claude_agent_test.sandbox import SecurityManager, RiskLevel

manager = SecurityManager(config)

violations = manager.get_violations(risk_level=RiskLevel.HIGH)
if violations:
    send_alert(f"{len(violations)} violations of high risk")
