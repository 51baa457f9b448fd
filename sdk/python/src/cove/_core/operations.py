"""The operations of spec/openapi.yaml that this package has, by their operationId.

`python3 -m cove._core.operations` prints them, one per line, for tests/static/sdk_coverage_test. REPEAT: sent a second time, a request does
nothing more than it did the first time (a create has an Idempotency-Key). ONCE: it may.
"""
from __future__ import annotations

from typing import NamedTuple

REPEAT, ONCE = True, False


class Operation(NamedTuple):
    method: str
    path: str
    repeatable: bool


OPERATIONS: dict[str, Operation] = {name: Operation(*row) for name, row in {
    "run": ("POST", "/v1/run", ONCE),
    "session": ("GET", "/v1/session", ONCE),
    "createSandbox": ("POST", "/v1/sandboxes", REPEAT),
    "listSandboxes": ("GET", "/v1/sandboxes", REPEAT),
    "getSandbox": ("GET", "/v1/sandboxes/{id}", REPEAT),
    "killSandbox": ("DELETE", "/v1/sandboxes/{id}", REPEAT),
    "extendSandbox": ("POST", "/v1/sandboxes/{id}/extend", REPEAT),
    "pauseSandbox": ("POST", "/v1/sandboxes/{id}/pause", ONCE),
    "resumeSandbox": ("POST", "/v1/sandboxes/{id}/resume", REPEAT),
    "createSnapshot": ("POST", "/v1/sandboxes/{id}/snapshots", ONCE),
    "forkSandbox": ("POST", "/v1/sandboxes/{id}/fork", ONCE),
    "listSnapshots": ("GET", "/v1/snapshots", REPEAT),
    "getSnapshot": ("GET", "/v1/snapshots/{snapshot}", REPEAT),
    "deleteSnapshot": ("DELETE", "/v1/snapshots/{snapshot}", REPEAT),
    "sandboxStats": ("GET", "/v1/sandboxes/{id}/stats", REPEAT),
    "getNetwork": ("GET", "/v1/sandboxes/{id}/network", REPEAT),
    "putNetwork": ("PUT", "/v1/sandboxes/{id}/network", REPEAT),
    "allowNetwork": ("POST", "/v1/sandboxes/{id}/network/allow", ONCE),
    "listNetworkEvents": ("GET", "/v1/sandboxes/{id}/network/events", REPEAT),
    "getPreview": ("GET", "/v1/sandboxes/{id}/preview", REPEAT),
    "setPreview": ("PUT", "/v1/sandboxes/{id}/preview", REPEAT),
    "rollPreview": ("POST", "/v1/sandboxes/{id}/preview/roll", ONCE),
    "linkPort": ("POST", "/v1/sandboxes/{id}/ports/{port}/link", REPEAT),
    "createVolume": ("POST", "/v1/volumes", ONCE),
    "listVolumes": ("GET", "/v1/volumes", REPEAT),
    "getVolume": ("GET", "/v1/volumes/{name}", REPEAT),
    "removeVolume": ("DELETE", "/v1/volumes/{name}", REPEAT),
    "listPrivateNetworks": ("GET", "/v1/networks", REPEAT),
    "createPrivateNetwork": ("POST", "/v1/networks", REPEAT),
    "getPrivateNetwork": ("GET", "/v1/networks/{name}", REPEAT),
    "deletePrivateNetwork": ("DELETE", "/v1/networks/{name}", REPEAT),
    "joinPrivateNetwork": ("PUT", "/v1/networks/{name}/members/{sandbox}", REPEAT),
    "leavePrivateNetwork": ("DELETE", "/v1/networks/{name}/members/{sandbox}", REPEAT),
    "getDefaultNetwork": ("GET", "/v1/tenant/network", REPEAT),
    "setDefaultNetwork": ("PUT", "/v1/tenant/network", REPEAT),
    "deleteDefaultNetwork": ("DELETE", "/v1/tenant/network", REPEAT),
    "listSecrets": ("GET", "/v1/secrets", REPEAT),
    "putSecret": ("PUT", "/v1/secrets/{name}", REPEAT),
    "deleteSecret": ("DELETE", "/v1/secrets/{name}", REPEAT),
    "listRefusals": ("GET", "/v1/sandboxes/{id}/refusals", REPEAT),
    "listPorts": ("GET", "/v1/sandboxes/{id}/ports", REPEAT),
    "relayGet": ("GET", "/v1/sandboxes/{id}/ports/{port}/{path}", ONCE),
    "relayPut": ("PUT", "/v1/sandboxes/{id}/ports/{port}/{path}", ONCE),
    "relayPost": ("POST", "/v1/sandboxes/{id}/ports/{port}/{path}", ONCE),
    "relayDelete": ("DELETE", "/v1/sandboxes/{id}/ports/{port}/{path}", ONCE),
    "relayPatch": ("PATCH", "/v1/sandboxes/{id}/ports/{port}/{path}", ONCE),
    "tunnel": ("GET", "/v1/sandboxes/{id}/tunnel/{port}", ONCE),
    "exec": ("POST", "/v1/sandboxes/{id}/exec", ONCE),
    "startProcess": ("POST", "/v1/sandboxes/{id}/processes", ONCE),
    "listProcesses": ("GET", "/v1/sandboxes/{id}/processes", REPEAT),
    "getProcess": ("GET", "/v1/sandboxes/{id}/processes/{proc}", REPEAT),
    "attachProcess": ("GET", "/v1/sandboxes/{id}/processes/{proc}/output", ONCE),
    "writeStdin": ("POST", "/v1/sandboxes/{id}/processes/{proc}/stdin", ONCE),
    "signalProcess": ("POST", "/v1/sandboxes/{id}/processes/{proc}/signal", ONCE),
    "terminal": ("GET", "/v1/sandboxes/{id}/terminal", ONCE),
    "readFile": ("GET", "/v1/sandboxes/{id}/files", REPEAT),
    "writeFile": ("PUT", "/v1/sandboxes/{id}/files", REPEAT),
    "removeFile": ("DELETE", "/v1/sandboxes/{id}/files", REPEAT),
    "readTar": ("GET", "/v1/sandboxes/{id}/files/tar", REPEAT),
    "writeTar": ("PUT", "/v1/sandboxes/{id}/files/tar", REPEAT),
    "statFile": ("GET", "/v1/sandboxes/{id}/files/stat", REPEAT),
    "listFiles": ("GET", "/v1/sandboxes/{id}/files/list", REPEAT),
    "globFiles": ("GET", "/v1/sandboxes/{id}/files/glob", REPEAT),
    "searchFiles": ("GET", "/v1/sandboxes/{id}/files/search", REPEAT),
    "watchFiles": ("GET", "/v1/sandboxes/{id}/files/watch", ONCE),
    "signFile": ("POST", "/v1/sandboxes/{id}/files/sign", REPEAT),
    "makeDirectory": ("POST", "/v1/sandboxes/{id}/files/mkdir", REPEAT),
    "moveFile": ("POST", "/v1/sandboxes/{id}/files/move", ONCE),
    "chmodFile": ("POST", "/v1/sandboxes/{id}/files/chmod", REPEAT),
    "listPools": ("GET", "/v1/pools", REPEAT),
    "drainPools": ("DELETE", "/v1/pools", ONCE),
    "setPool": ("PUT", "/v1/pools/{template}", REPEAT),
    "unsetPool": ("DELETE", "/v1/pools/{template}", REPEAT),
    "listTenants": ("GET", "/v1/tenants", REPEAT),
    "addTenant": ("POST", "/v1/tenants", ONCE),
    "getTenant": ("GET", "/v1/tenants/{tenant}", REPEAT),
    "changeTenant": ("PATCH", "/v1/tenants/{tenant}", REPEAT),
    "removeTenant": ("DELETE", "/v1/tenants/{tenant}", REPEAT),
    "listKeys": ("GET", "/v1/keys", REPEAT),
    "createKey": ("POST", "/v1/keys", ONCE),
    "revokeKey": ("DELETE", "/v1/keys/{key}", REPEAT),
    "listAuditChain": ("GET", "/v1/audit", REPEAT),
    "verifyAudit": ("POST", "/v1/audit/verify", REPEAT),
    "pruneAudit": ("POST", "/v1/audit/prune", REPEAT),
    "analyzeCommand": ("POST", "/v1/policy/analyze", REPEAT),
    "listViolations": ("GET", "/v1/policy/violations", REPEAT),
    "executeTool": ("POST", "/execute", ONCE),
    "toolBash": ("POST", "/bash", ONCE),
    "toolRead": ("POST", "/file/read", REPEAT),
    "toolWrite": ("POST", "/file/write", ONCE),
    "toolSearch": ("POST", "/search", REPEAT),
    "toolSandboxMake": ("POST", "/sandbox", ONCE),
    "toolSandboxGet": ("GET", "/sandbox", REPEAT),
    "toolSandboxEnd": ("DELETE", "/sandbox", REPEAT),
    "listTools": ("GET", "/tools", REPEAT),
    "listPresets": ("GET", "/presets", REPEAT),
    "listAudit": ("GET", "/audit-logs", REPEAT),
    "getStats": ("GET", "/stats", REPEAT),
    "getMetrics": ("GET", "/metrics", REPEAT),
    "getHealth": ("GET", "/health", REPEAT),
    "getOpenapi": ("GET", "/openapi.yaml", REPEAT),
}.items()}

# The code interpreter, at port 49999 of every sandbox (docs/interpreter.md), and where the token that it wants comes from.
CELLS: dict[str, Operation] = {name: Operation(*row) for name, row in {
    "cellAccess": ("GET", "/sandboxes/{id}", REPEAT),
    "executeCell": ("POST", "/execute", ONCE),
    "listContexts": ("GET", "/contexts", REPEAT),
    "createContext": ("POST", "/contexts", ONCE),
    "removeContext": ("DELETE", "/contexts/{context}", REPEAT),
    "restartContext": ("POST", "/contexts/{context}/restart", REPEAT),
    "forkContext": ("POST", "/contexts/{context}/fork", ONCE),
}.items()}

if __name__ == "__main__":
    for name, operation in OPERATIONS.items():
        print(name, operation.method, operation.path)
