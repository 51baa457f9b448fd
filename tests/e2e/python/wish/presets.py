from claude_agent_test.sandbox import SANDBOX_PRESETS

minimal_config = SANDBOX_PRESETS["minimal"]
standard_config = SANDBOX_PRESETS["standard"]
dev_config = SANDBOX_PRESETS["development"]
print(minimal_config.resource_limits.memory_mb, standard_config.network.enabled, dev_config.network.enabled)
