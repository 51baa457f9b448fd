"""Claude Code in a sandbox whose network is the model's host, with the key as a secret. Run by claude_key_test, where api.anthropic.com is a script."""
import asyncio
import json
import os

from harness import STATE, Server, check, finish, same, within
import claude_agent_sdk as sdk

INTERNET, MODEL_LOG = os.environ["INTERNET"], os.environ["MODEL_LOG"]
KEY = "sk-value-%d-do-not-show" % os.getpid()
server = Server("--network-dns", "93.184.216.53", "--network-ca", INTERNET + "/ca.pem").start()
os.environ["COVE_URL"] = "unix:%s/cove.sock" % STATE
import cove  # noqa: E402
from cove.sandbox import claude_inside  # noqa: E402

LIMITS = {"memory": "2g", "disk": "2g", "pids": 512}
NETWORK = {"allow": ["api.anthropic.com:443"], "secrets": ["ANTHROPIC_API_KEY"]}
SILENT = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}


def requests():
    """That came to a host of the internet: path, whether over TLS, headers by name."""
    with open(INTERNET + "/seen") as file:
        return [(seen["path"], seen["tls"], {name.lower(): value for name, value in seen["headers"]}) for seen in map(json.loads, file)]


def events(box):
    return server.ask("GET", "/v1/sandboxes/%s/network/events" % box).json["events"]


async def main():
    async with await cove.AsyncSandbox.create("host", timeout=300, limits=LIMITS, network=NETWORK, envs=SILENT) as box:
        await box.files.upload(os.environ["CLAUDE_CLI"], "claude", mode="755")
        options = claude_inside(box, command=["/home/user/claude"], permission_mode="bypassPermissions")
        messages = [message async for message in sdk.query(prompt="go on", options=options)]
        same("Claude Code asks its model, and works", ("success", "the end"), (messages[-1].get("subtype"), messages[-1].get("result")))
        same("commands run in the sandbox", "here\n", await box.files.read("made"))
        check("other hosts are refused, and an event says so", within(20, lambda: any(event.get("host") == "www.example.com" for event in events(box.id))), events(box.id))
        same("no system call of Claude Code is refused", [], [refusal.call for refusal in await box.refusals()])
    asked = [one for one in requests() if one[0].startswith("/v1/messages")]
    same("the model's host gets the key, over TLS", {(True, KEY)}, {(tls, headers.get("x-api-key")) for _, tls, headers in asked})
    same("no other host was reached", [], [path for path, _, _ in requests() if path.startswith("/seen")])
    with open(MODEL_LOG) as file:
        told = file.read()
    check("the sandbox sees a placeholder", "[cove-secret-" in told, told[-400:])
    check("the sandbox never sees the key", KEY not in told and KEY not in json.dumps(messages))


with cove.Cove() as client:
    client.secrets.set("ANTHROPIC_API_KEY", KEY, ["api.anthropic.com"])
asyncio.run(main())
same("no sandbox is left", [], [info.id for info in cove.Sandbox.list()])
server.end()
finish()
