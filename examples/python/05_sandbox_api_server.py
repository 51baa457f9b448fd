"""The API server of the sandboxes is coved: `cove up` starts it, and no other server (uvicorn or the like) is needed.

This program asks each of its routes for tools: POST /bash, /file/write, /file/read, /search, /execute; GET /, /health, /stats, /audit-logs.
"""
from cove import Cove

with Cove() as server:
    print("server:", server.url, server.health()["status"])
    print("POST /bash:", server.tools.bash("echo Hello").output.strip())
    print("POST /file/write:", server.tools.write("test.txt", "Hello, World!").success)
    print("POST /file/read:", server.tools.read("test.txt").output.strip())
    print("POST /search:", server.tools.search("World").output.strip())
    print("POST /execute:", server.tools.execute("Glob", {"pattern": "*.txt"}).output.strip())
    print("GET /stats:", server.stats()["sandboxes"]["count"], "sandboxes")
    print("GET /audit-logs:", next(server.audit_logs(limit=1))["action"])
    server.tools.end_default_sandbox()
