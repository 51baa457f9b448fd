"""What the operator of a server does: tenants, keys and the audit log of all of them. Over the unix socket, or with a key of scope `operator`."""
from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, List, Optional

from .._core.request import present
from ..models import KeyInfo, NetworkRules, Quotas, TenantInfo

if TYPE_CHECKING:
    from .client import AsyncCove


class AsyncTenants:
    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def list(self) -> List[TenantInfo]:
        return [TenantInfo.of(one) for one in (await self._client.call("listTenants")).json()["tenants"]]

    async def add(self, name: str, *, quotas: Optional[Quotas] = None, network: Optional[NetworkRules] = None) -> TenantInfo:
        order = present({"name": name, "quotas": quotas, "network": network})
        return TenantInfo.of((await self._client.call("addTenant", json=order)).json())

    async def get(self, name: str) -> TenantInfo:
        return TenantInfo.of((await self._client.call("getTenant", tenant=name)).json())

    async def change(self, name: str, *, quotas: Optional[Quotas] = None, network: Optional[NetworkRules] = None,
                     no_network: bool = False) -> TenantInfo:
        """What is not said stays as it is; `no_network` takes the default network away."""
        order = {**present({"quotas": quotas, "network": network}), **({"network": None} if no_network else {})}
        return TenantInfo.of((await self._client.call("changeTenant", tenant=name, json=order)).json())

    async def remove(self, name: str) -> bool:
        """Only one without sandboxes, snapshots and volumes; its keys go, too."""
        return await self._client.remove("removeTenant", tenant=name)


class AsyncKeys:
    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def list(self, *, tenant: Optional[str] = None) -> List[KeyInfo]:
        return [KeyInfo.of(one) for one in (await self._client.call("listKeys", query={"tenant": tenant})).json()["keys"]]

    async def create(self, tenant: str, *, scope: Optional[str] = None, label: Optional[str] = None, expires: Optional[float] = None) -> KeyInfo:
        """`key` of the answer is shown this once. `expires` is seconds from now."""
        order = present({"tenant": tenant, "scope": scope, "label": label, "expires": expires})
        return KeyInfo.of((await self._client.call("createKey", json=order)).json())

    async def revoke(self, key_id: str) -> bool:
        """At once and for good."""
        return await self._client.remove("revokeKey", key=key_id)


class AsyncAudit:
    """The audit log of all tenants, as its chain hashes it. `audit_logs()` has the records of one's own tenant."""

    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def records(self, *, tenant: Optional[str] = None, sandbox: Optional[str] = None, action: Optional[str] = None,
                      outcome: Optional[str] = None, since_ms: Optional[int] = None, until_ms: Optional[int] = None,
                      oldest_first: bool = False, limit: int = 100) -> AsyncIterator[dict[str, Any]]:
        """All of them, `limit` at a time."""
        cursor: Optional[int] = None
        while True:
            page = (await self._client.call("listAuditChain", query={
                "tenant": tenant, "sandbox": sandbox, "action": action, "outcome": outcome, "since_ms": since_ms, "until_ms": until_ms,
                "oldest_first": oldest_first or None, "limit": limit, "cursor": cursor})).json()
            for record in page.get("records", []):
                yield record
            cursor = page.get("next")
            if cursor is None:
                return

    async def verify(self, head: Optional[str] = None) -> dict[str, Any]:
        """Computes the chain again; `head` is a hash that was noted earlier and must still be there."""
        return (await self._client.call("verifyAudit", json=present({"head": head}), timeout=600)).json()

    async def prune(self, older_than: float) -> int:
        """Removes records that are older than so many seconds; how many went."""
        return int((await self._client.call("pruneAudit", json={"older_than": older_than})).json().get("removed", 0))
