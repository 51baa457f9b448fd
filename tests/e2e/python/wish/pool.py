from claude_agent_test.sandbox import SandboxPool

pool = SandboxPool(size=2)
sandbox = await pool.acquire()
result = await sandbox.execute_bash("echo from the pool")
print(result.output)
await sandbox.close()
await pool.close()
