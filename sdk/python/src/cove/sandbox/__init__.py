"""Executors, tool proxies, policy and callbacks for AI agents, over the tools of docs/tools.md.

    async with SandboxExecutor(SandboxConfig()) as executor:
        result = await executor.execute_bash("echo hello")
        print(result.output)
"""
from .claude import agent_options, claude_inside, create_sandbox_tool_callback, sandbox_hooks, write_cli_script
from .config import SANDBOX_PRESETS, NetworkConfig, ResourceLimits, SandboxConfig, SandboxType, SecurityConfig
from .executor import SandboxExecutor
from .pool import SandboxPool
from .security import CommandAnalyzer, RateLimiter, RiskLevel, SecurityManager, SecurityViolation
from .tools import CoveSandbox, E2BSandbox, ToolInput, ToolProxy, ToolResult

__all__ = ["SANDBOX_PRESETS", "CommandAnalyzer", "CoveSandbox", "E2BSandbox", "NetworkConfig", "RateLimiter", "ResourceLimits",
           "RiskLevel", "SandboxConfig", "SandboxExecutor", "SandboxPool", "SandboxType", "SecurityConfig", "SecurityManager",
           "SecurityViolation", "ToolInput", "ToolProxy", "ToolResult", "agent_options", "claude_inside", "create_sandbox_tool_callback",
           "sandbox_hooks", "write_cli_script"]
