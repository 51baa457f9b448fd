"""The power goes in the middle of a load, again and again, on a disk that loses what was not flushed. Run by tests/powercut/run.

Each round: boot, look whether all that was answered before the cut is there and whole, load, cut. ROUNDS, SEED.
MACHINE=debian12 or debian13: a whole machine in QEMU, else cove on this host's kernel."""
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time

from harness import check, failures, passed
from load import Known, Lanes, content
from machine import Machine
from vm import VirtualMachine

ROUNDS, SEED = int(os.environ.get("ROUNDS", "20")), int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
BUILD = os.path.realpath(os.environ.get("BUILD", "build"))
PROMISED_MS = 100  # docs/tenants.md: what a power cut may take of creates, ends and executions
rng = random.Random(SEED)
total = {}


def tally(what, n=1):
    total[what] = total.get(what, 0) + n


class Boot:
    """What the machine has after a cut, against what is known."""

    def __init__(self, machine, known, lanes):
        self.m, self.k, self.l, self.wrong = machine, known, lanes, []

    def bad(self, text):
        self.wrong.append(text)

    def holds(self, box, words):
        """The word in its memory and the one in its file are the same, and one of these."""
        said = self.l.run(box, "echo get >/tmp/in; cat /tmp/out").strip()
        note = self.l.run(box, "cat /home/user/note")
        if said not in words:
            self.bad("%s has '%s' in memory, not %s" % (box, said, sorted(words)))
        elif note != content(said):
            self.bad("%s has another file than '%s': %d bytes" % (box, said, len(note)))

    def paused(self):
        for box, word in self.k.paused.items():
            status, answer = self.m.ask("POST", "/v1/sandboxes/%s/resume" % box)
            if status != 200:
                self.bad("%s was paused, and does not resume: %s %s" % (box, status, answer))
                continue
            self.holds(box, {word})
            self.l.must("DELETE", "/v1/sandboxes/" + box)
            tally("paused sandboxes resumed whole")

    def unanswered(self):
        """Either is right, but not a mixture."""
        for box, words in self.k.maybe.items():
            status, answer = self.m.ask("GET", "/v1/sandboxes/" + box)
            if status != 200 or answer.get("state") != "paused":
                tally("pauses or resumes under way: lost")
                continue
            status, answer = self.m.ask("POST", "/v1/sandboxes/%s/resume" % box)
            if status == 200:
                self.holds(box, words)
                tally("pauses or resumes under way: there, whole")
            else:
                tally("pauses or resumes under way: refused")
            self.m.ask("DELETE", "/v1/sandboxes/" + box)

    def snapshots(self):
        for snapshot, word in self.k.snapshots.items():
            status, answer = self.m.ask("POST", "/v1/sandboxes", {"snapshot": snapshot, "timeout": 600})
            if status != 201:
                self.bad("snapshot %s: %s %s" % (snapshot, status, answer))
                continue
            self.k.new_id(answer["id"])
            self.holds(answer["id"], {word})
            self.l.must("DELETE", "/v1/sandboxes/" + answer["id"])
            self.l.must("DELETE", "/v1/snapshots/" + snapshot)
            tally("snapshots whole")
        for snapshot in self.k.dropped:
            if self.m.ask("GET", "/v1/snapshots/" + snapshot)[0] != 404:
                self.bad("snapshot %s was deleted, and is there" % snapshot)

    def lost(self):
        """What ran is told as lost, with the reason, and nothing is counted for it."""
        listed = {s["id"]: s for s in self.l.must("GET", "/v1/sandboxes?limit=200")["sandboxes"]}
        for box in self.k.running:
            if listed.get(box, {}).get("state") in ("running", "paused"):
                self.bad("%s ran when the power went, and is %s" % (box, listed[box]["state"]))
        kept = [s for s in json.loads(self.m.cove("ps", "--json").stdout or "[]") if s.get("state") == "running"]
        if kept:
            self.bad("the keeper has %s" % [s["id"] for s in kept])

    def told_lost(self, seen):
        """Of what ran and has a record of its create, the audit log says that it is lost."""
        ran = {box for box in self.k.running if (box, "sandbox.create") in seen}
        silent = [box for box in ran if (box, "sandbox.lost") not in seen]
        if silent:
            self.bad("%s ran when the power went, and no record says that they are lost" % silent[:3])
        tally("running sandboxes reported lost", len(ran) - len(silent))

    def volume(self):
        box = self.l.create(volumes=[{"name": "data", "path": "/data", "read_only": True}])
        lines = self.l.run(box, "cat /data/lines").splitlines()
        want = ["%d %s" % (n, hashlib.sha256(b"%d" % n).hexdigest()) for n in range(1, max(len(lines), self.k.volume) + 1)]
        if len(lines) < self.k.volume or lines != want[:len(lines)]:
            self.bad("the volume has %d lines, %d were synced; the first that is wrong: %s" %
                     (len(lines), self.k.volume, next((a for a, b in zip(lines, want) if a != b), None)))
        tally("synced volume writes whole", self.k.volume)
        self.k.volume = len(lines)  # one may have been written and not answered
        self.l.kill(box)

    def secrets(self):
        there = {s["name"] for s in self.l.must("GET", "/v1/secrets")["secrets"]}
        if self.k.secrets - there:
            self.bad("secrets %s are gone" % sorted(self.k.secrets - there))

    def audit(self, cut_at):
        said = self.m.cove("audit", "verify")
        if said.returncode != 0 or not said.stdout.startswith("whole"):
            self.bad("audit: %s%s" % (said.stdout, said.stderr))
        records = [json.loads(line) for line in self.m.cove("audit", "export").stdout.splitlines()]
        seen = {(r["sandbox_id"], r["action"]) for r in records}
        self.told_lost(seen)
        missing = [d for d in self.k.durable if d not in seen]
        if missing:
            self.bad("audit records that were on disk are gone: %s" % missing[:3])
        ages = [(cut_at - at) * 1000 for at, box, action in self.k.audit if (box, action) not in seen]
        most = PROMISED_MS + self.k.sync_ms  # and what the disk, and a busy machine, took for one sync
        if any(age > most for age in ages):
            self.bad("audit records of %s ms before the cut are gone, a sync took %d ms" % ([int(a) for a in ages], self.k.sync_ms))
        tally("audit records", len(self.k.audit))
        tally("audit records lost", len(ages))
        total["longest sync, ms"] = max(total.get("longest sync, ms", 0), int(self.k.sync_ms))
        total["oldest lost record, ms"] = max([total.get("oldest lost record, ms", 0), *map(int, ages)])


def round_of(n, machine, known, cut_at):
    took = machine.boot()
    lanes = Lanes(machine, known, rng)
    if cut_at is None:
        lanes.must("POST", "/v1/volumes", {"name": "data", "size": "64m"})
    else:
        boot = Boot(machine, known, lanes)
        boot.lost()
        for part in (boot.paused, boot.unanswered, boot.snapshots, boot.volume, boot.secrets):
            try:
                part()
            except Exception as e:
                boot.bad("%s: %r" % (part.__name__, e))
        boot.audit(cut_at)
        check("cut %d: booted in %.1f s, %d paused, %d snapshots, %d under way, %d lines, %d secrets: all as answered" %
              (n - 1, took, len(known.paused), len(known.snapshots), len(known.maybe), known.volume, len(known.secrets)),
              not boot.wrong, "; ".join(boot.wrong))
    return lanes


def load_and_cut(machine, known, lanes):
    """Cut when so many answers came, at any moment behind the last, and mostly in the middle of a write."""
    wanted, end = rng.randint(3, 9), time.time() + machine.load_seconds
    lanes.start()
    while known.answered() < wanted and time.time() < end and not lanes.trouble:
        time.sleep(0.002)
    time.sleep(rng.choice((0, rng.random() * 0.05, rng.random() * 0.6)))
    if rng.random() < 0.75:
        machine.disk.wait_for_write(5)
    machine.power_off()
    lanes.join()
    if lanes.trouble:
        check("the load runs", False, lanes.trouble)
    for what, count in known.counts.items():
        tally(what, count)


def main():
    for end in (signal.SIGINT, signal.SIGTERM):
        signal.signal(end, lambda number, frame: sys.exit(128 + number))  # not without what `finally` clears away
    work = tempfile.mkdtemp(prefix="cove-powercut.", dir=os.environ.get("TMPDIR", "/tmp"))
    os.chmod(work, 0o711)  # the server is another user
    debian, known, cut_at = os.environ.get("MACHINE"), Known(), None
    machine = VirtualMachine(work, debian) if debian else Machine(work, BUILD)
    print("# %d cuts of %s, SEED=%d, in %s" % (ROUNDS, debian or "cove on this host", SEED, work), flush=True)
    try:
        for n in range(1, ROUNDS + 2):
            begin = time.time()
            lanes = round_of(n, machine, known, cut_at)
            if n == ROUNDS + 1:
                break
            fresh = Known()
            fresh.ids, fresh.secrets, fresh.volume = known.ids, known.secrets, known.volume
            lanes.k = known = fresh
            load_and_cut(machine, known, lanes)
            cut_at = machine.cut_at
            torn = rng.random() < 0.5
            size, lost, spared = machine.disk.off(torn, rng)
            tally("writes lost by the cuts", lost)
            print("# cut %d: %s; %d MiB written, %d writes lost%s; a round of %d s" %
                  (n, ", ".join("%d %s" % (c, w) for w, c in known.counts.items()), size >> 20, lost,
                   ", %d behind the last flush spared" % spared if torn else "", time.time() - begin), flush=True)
        machine.shut_down()
    except Exception as e:
        check("the rounds run", False, repr(e))
        if os.path.exists(machine.logs):
            print("# " + machine.log_since(max(0, os.path.getsize(machine.logs) - 3000)).replace("\n", "\n# "))
    finally:
        if machine.up and machine.up.poll() is None:
            machine.power_off()
        machine.disk.clean()
        shutil.rmtree(work, ignore_errors=True)
    for what in sorted(total):
        print("# %s: %d" % (what, total[what]))
    print("%d passed, %d failed" % (len(passed), len(failures)))
    sys.exit(1 if failures or not passed else 0)


main()
