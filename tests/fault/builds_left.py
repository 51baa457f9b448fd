"""What tests of builds that fail half-way share: builds of one server, and what is left of them."""
import hashlib
import io
import json
import os
import sqlite3
import tarfile

from harness import STATE, check, same, within

UPLOADS = STATE + "/server/build-files/"
DB = "file:%s/server/cove.db?mode=ro" % STATE


def step(kind, *args, **more):
    return {"type": kind, "args": list(args), **more}


class Builds:
    """Of a server of the harness."""

    def __init__(self, server):
        self.s = server

    def upload(self, size=100000):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as t:
            info = tarfile.TarInfo("a")
            info.size = size
            t.addfile(info, io.BytesIO(bytes(size)))
        raw = data.getvalue()
        name = hashlib.sha256(raw).hexdigest()
        same("files are uploaded", 200, self.s.ask("PUT", "/v1/builds/files/" + name, raw).status)
        return name

    def begin(self, body):
        """Its id."""
        return self.s.ask("POST", "/v1/builds", body).json["id"]

    def texts(self, build):
        lines = self.s.ask("GET", "/v1/builds/%s/logs?follow=false" % build).body.splitlines()
        return [json.loads(x).get("text", "") for x in lines]

    def errors(self, build):
        """Of its log: why the build failed."""
        lines = self.s.ask("GET", "/v1/builds/%s/logs?follow=false" % build).body.splitlines()
        return [x["text"] for x in map(json.loads, lines) if x.get("level") == "error"]

    def state_of(self, build):
        return self.s.ask("GET", "/v1/builds/" + build).json

    def ended(self, build):
        within(60, lambda: self.state_of(build).get("ended_at"))
        return self.state_of(build)

    def boxes(self):
        """Sandboxes of builds."""
        return [b for b in self.s.ask("GET", "/v1/sandboxes").json["sandboxes"] if (b.get("metadata") or {}).get("build")]

    def clean(self, when):
        check("%s: no sandbox of a build is left" % when, within(60, lambda: not self.boxes()), self.boxes())
        check("%s: no file of a stage is left" % when, within(60, lambda: not parts()), parts())
        check("%s: no snapshot is left that nothing speaks of" % when, within(60, lambda: lost() == 0), lost())
        check("%s: the keeper has no image that the server does not know of" % when, within(60, lambda: not images()), images())


def lost():
    """Snapshots that no build and no step has."""
    with sqlite3.connect(DB, uri=True) as db:
        return db.execute("SELECT count(*) FROM snapshots WHERE state = 3 AND id NOT IN (SELECT snapshot FROM builds) "
                          "AND id NOT IN (SELECT snapshot FROM build_steps)").fetchone()[0]


def parts():
    return [n for n in os.listdir(UPLOADS) if "+part-" in n] if os.path.isdir(UPLOADS) else []


def images():
    """What the keeper has on disk, and the records of it."""
    with sqlite3.connect(DB, uri=True) as db:
        known = {row[0] for row in db.execute("SELECT id FROM snapshots")}
    return set(os.listdir(STATE + "/images")) - known
