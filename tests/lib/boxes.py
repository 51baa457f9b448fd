"""Sandboxes as tests of pauses use them. KEY and OTHER_KEY are keys of two tenants, COVE is the command line."""
import os
import time

from harness import ask, must, within

KEY, OTHER, COVE = os.environ["KEY"], os.environ["OTHER_KEY"], os.environ["COVE"]


def api(method, path, body=None, key=KEY):
    return ask(method, path, body, key=key)


class Box:
    def __init__(self, **body):
        body.setdefault("timeout", 600)
        a = api("POST", "/v1/sandboxes", body)
        must("a sandbox is made", a.status == 201, a.body)
        self.of(a.json["id"])

    def of(self, box):
        self.id = box
        self.at = "/v1/sandboxes/" + box
        return self

    def get(self):
        return api("GET", self.at).json

    def post(self, what, body=None):
        return api("POST", self.at + "/" + what, body)

    def run(self, command):
        return self.post("exec", {"command": command})

    def said(self, command):
        a = self.run(command)
        return a.json["stdout"].strip() if a.status == 200 else "%d %s" % (a.status, a.body)

    def end(self):
        return api("DELETE", self.at).status


def again(box):
    return Box.__new__(Box).of(box)


def audit(action, box=None):
    """Those records, of which there is one at least: they are on disk soon, not at once."""
    path = "/audit-logs?limit=1000" + ("&sandbox_id=" + box if box else "")

    def records():
        return [r for r in api("GET", path).json["logs"] if r["action"] == action]
    within(10, records)
    time.sleep(0.2)  # for one too many
    return records()
