"""What a machine is doing when its power goes: each lane writes down what was answered, and only then.

`Known` is what must be found at the next boot. A thing is `sure` from its answer to the next request that changes it."""
import hashlib
import threading
import time

from machine import Cut

# Holds a word in memory; what it is told by one pipe, it answers by the other.
HOLDER = ("mkfifo /tmp/in /tmp/out; T=none; while :; do read c a </tmp/in; [ \"$c\" = set ] && T=$a; "
          "echo \"$T\" >/tmp/out; done")


def content(word):
    """A file of 300 kB that only this word makes."""
    return "".join(hashlib.sha256(("%s %d" % (word, i)).encode()).hexdigest() + "\n" for i in range(4600))


class Known:
    def __init__(self):
        self.lock = threading.Lock()
        self.ids, self.fresh = set(), set()  # all that were ever answered; those of this boot
        self.paused = {}     # id -> word
        self.maybe = {}      # id -> words: a request was under way
        self.running = set()
        self.snapshots = {}  # id -> word
        self.dropped = set()  # snapshots whose delete was answered
        self.secrets = set()
        self.volume = 0      # lines that were synced
        self.sync_ms = 0     # the longest that a request took which waits for the store's disk
        self.audit = []      # (time of the answer, sandbox, action) that may lose its last 100 ms
        self.durable = set()  # (sandbox, action) of which a record is on disk
        self.counts = dict.fromkeys(("creates", "pauses", "resumes", "snapshots", "forks", "volume writes", "secrets"), 0)

    def count(self, what):
        self.counts[what] += 1

    def answered(self):
        return self.counts["pauses"] + self.counts["snapshots"]

    def new_id(self, box):
        with self.lock:
            again = box in self.ids
            self.ids.add(box)
        if again:
            raise RuntimeError("id %s was given twice" % box)


class Lanes:
    def __init__(self, machine, known, rng):
        self.m, self.k, self.rng, self.trouble, self.word_count = machine, known, rng, [], 0
        self.threads = [threading.Thread(target=self.lane, args=(work,)) for work in
                        (self.sleeps, self.sleeps, self.snaps, self.forks, self.writes_volume, self.keeps_secrets, self.comes_and_goes)]

    def start(self):
        [t.start() for t in self.threads]

    def join(self):
        [t.join() for t in self.threads]

    def lane(self, work):
        try:
            while not self.m.cut_at:
                work()
        except Cut:
            pass
        except Exception as e:  # a lane that ends early is a failure, not less load
            if not self.m.cut_at:
                self.trouble.append("%s: %r" % (work.__name__, e))

    # ---- requests ----
    def must(self, method, path, body=None, want=(200, 201, 204)):
        status, answer = self.m.ask(method, path, body)
        while status == 429 and "loop devices" in str(answer):  # another program of this host takes them
            time.sleep(0.05)
            status, answer = self.m.ask(method, path, body)
        if status not in want:
            raise RuntimeError("%s %s: %s %s" % (method, path, status, str(answer)[:300]))
        return answer

    def create(self, **body):
        box = self.must("POST", "/v1/sandboxes", {"timeout": 3600, **body})["id"]
        self.k.new_id(box)
        self.k.running.add(box)
        self.k.count("creates")
        self.k.audit.append((time.time(), box, "sandbox.create"))
        return box

    def run(self, box, command):
        return self.must("POST", "/v1/sandboxes/%s/exec" % box, {"command": command})["stdout"]

    def kill(self, box):
        self.k.running.discard(box)
        self.must("DELETE", "/v1/sandboxes/" + box)
        self.k.audit.append((time.time(), box, "sandbox.kill"))

    def word(self):
        with self.k.lock:
            self.word_count += 1
            return "w%d-%08x" % (self.word_count, self.rng.getrandbits(32))

    def hold(self, box):
        self.must("POST", "/v1/sandboxes/%s/processes" % box, {"command": HOLDER})
        self.run(box, "until [ -p /tmp/out ]; do sleep 0.02; done")

    def tell(self, box, word):
        """In memory and in a file; nothing of it is synced by who writes it."""
        self.must("PUT", "/v1/sandboxes/%s/files?path=/home/user/note" % box, content(word).encode())
        said = self.run(box, "echo set %s >/tmp/in; cat /tmp/out" % word).strip()
        if said != word:
            raise RuntimeError("%s holds '%s', not '%s'" % (box, said, word))

    # ---- lanes ----
    def sleeps(self):
        box, before = self.create(), None
        self.hold(box)
        for _ in range(self.rng.randint(1, 3)):
            word = self.word()
            self.tell(box, word)
            self.k.running.discard(box)
            self.k.maybe[box] = {word, before} - {None}
            answer = self.must("POST", "/v1/sandboxes/%s/pause" % box, {"tier": "disk"})
            if answer.get("tier") != "disk":
                raise RuntimeError("not on disk: %s" % answer)
            del self.k.maybe[box]
            self.k.paused[box] = before = word
            self.k.durable.add((box, "sandbox.pause"))
            self.k.count("pauses")
            if self.rng.random() < 0.4:
                return
            del self.k.paused[box]
            self.k.maybe[box] = {word}
            self.must("POST", "/v1/sandboxes/%s/resume" % box)
            del self.k.maybe[box]
            self.k.running.add(box)
            self.k.count("resumes")
            before = None  # it runs: the image of before is gone
        self.kill(box)

    def snaps(self):
        box = self.create()
        self.hold(box)
        for _ in range(4):
            word = self.word()
            self.tell(box, word)
            snapshot = self.must("POST", "/v1/sandboxes/%s/snapshots" % box, {})["id"]
            self.k.new_id(snapshot)
            self.k.snapshots[snapshot] = word
            self.k.count("snapshots")
            if self.rng.random() < 0.3:
                del self.k.snapshots[snapshot]
                self.must("DELETE", "/v1/snapshots/" + snapshot)
                self.k.dropped.add(snapshot)
        self.kill(box)

    def forks(self):
        box = self.create()
        self.hold(box)
        for _ in range(2):
            word = self.word()
            self.tell(box, word)
            for fork in self.must("POST", "/v1/sandboxes/%s/fork" % box, {"count": 2})["forks"]:
                if not fork.get("sandbox"):
                    raise RuntimeError("no fork: %s" % fork)
                copy = fork["sandbox"]["id"]
                self.k.new_id(copy)
                self.k.running.add(copy)
                self.k.count("forks")
                said = self.run(copy, "echo get >/tmp/in; cat /tmp/out").strip()
                if said != word:
                    raise RuntimeError("fork %s holds '%s', not '%s'" % (copy, said, word))
                self.kill(copy)
        self.kill(box)

    def writes_volume(self):
        box = self.create(volumes=[{"name": "data", "path": "/data"}])
        for _ in range(12):
            n = self.k.volume + 1
            self.run(box, "echo %d %s >>/data/lines && sync /data/lines" % (n, hashlib.sha256(b"%d" % n).hexdigest()))
            self.k.volume = n
            self.k.count("volume writes")
        self.kill(box)

    def keeps_secrets(self):
        name = "S%d" % (self.k.counts["secrets"] % 60)  # a tenant has 100 at most
        begin = time.time()
        try:
            self.must("PUT", "/v1/secrets/" + name, {"value": name * 3, "hosts": ["example.com"]})
        finally:  # the cut may have been in the middle of one
            self.k.sync_ms = max(self.k.sync_ms, ((self.m.cut_at or time.time()) - begin) * 1000)
        self.k.secrets.add(name)
        self.k.count("secrets")
        time.sleep(0.05)

    def comes_and_goes(self):
        box = self.create()
        self.run(box, "head -c 3000000 /dev/urandom >/home/user/noise")
        self.kill(box)
