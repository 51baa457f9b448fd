"""cove on a disk of cutdisk.py, in mounts of its own and with a boot id of its own: booted, asked, cut off."""
import contextlib
import glob
import http.client
import os
import re
import signal
import subprocess
import threading
import time
import uuid

from cutdisk import CutDisk
from harness import request, within


class Cut(Exception):
    """The power is off: no answer counts."""


class Asked:
    """What is booted, asked over HTTP and cut off: up is its process, logs what it says."""
    patience, load_seconds = 120, 90  # for one answer; for the answers of a round

    def __init__(self, work, disk):
        self.work, self.disk, self.logs = work, disk, work + "/cove.log"
        self.up = self.port = self.cut_at = None
        self.connecting = threading.Lock()

    def log_since(self, at):
        if not os.path.exists(self.logs):
            return ""
        with open(self.logs, "rb") as f:
            f.seek(at)
            return f.read().decode("utf-8", "replace")

    def ask(self, method, path, body=None, timeout=None):
        """(status, JSON or text). An answer that came behind the cut is none."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout or self.patience)
        try:
            with self.connecting:  # a port that QEMU forwards has a backlog of 1: of several at once, one may be reset
                c.connect()
            a = request(c, method, path, body, headers={"Content-Type": "application/json"})
        except (OSError, http.client.HTTPException) as e:
            if self.cut_at:
                raise Cut() from e
            raise
        if self.cut_at:
            raise Cut()
        return a.status, a.body.decode("utf-8", "replace") if a.json is None else a.json


class Machine(Asked):
    def __init__(self, work, build):
        super().__init__(work, CutDisk(work))
        self.build, self.state, self.group = build, work + "/state", None
        os.makedirs(self.state)

    def boot(self):
        """Returns the seconds until the server was ready."""
        boot_id, begin = self.work + "/boot_id", time.time()
        with open(boot_id, "w") as f:
            f.write(str(uuid.uuid4()) + "\n")
        loop, self.cut_at = self.disk.on(), None
        at = os.path.getsize(self.logs) if os.path.exists(self.logs) else 0
        script = ("mount %s %s && mount --bind %s /proc/sys/kernel/random/boot_id && mkdir -p %s/cove && "
                  "exec %s/cove up --state %s/cove --listen 127.0.0.1:0" %
                  (loop, self.state, boot_id, self.state, self.build, self.state))
        with open(self.logs, "ab") as log:
            self.up = subprocess.Popen(["unshare", "-m", "sh", "-ec", script], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, env={**os.environ, "COVE_POOL": "off"})
        within(120, lambda: "ready listen=" in self.log_since(at) or self.up.poll() is not None)
        found = re.search(r"ready listen=127\.0\.0\.1:(\d+)", self.log_since(at))
        if not found:
            raise RuntimeError("cove does not start: " + self.log_since(at)[-2000:])
        self.port = int(found.group(1))
        self.disk.mounted()
        st = os.stat("/proc/%d/root%s/cove" % (self.up.pid, self.state))
        self.group = "cove-%x-%x" % (st.st_dev, st.st_ino)
        return time.time() - begin

    def cove(self, *args):
        return subprocess.run(["nsenter", "-t", str(self.up.pid), "-m", self.build + "/cove", "--state", self.state + "/cove",
                               *args], capture_output=True, text=True)

    def processes(self):
        found = set()
        for path in glob.glob("/sys/fs/cgroup/**/%s/**/cgroup.procs" % self.group, recursive=True):
            with contextlib.suppress(OSError), open(path) as f:
                found |= {int(line) for line in f if line.strip() != "0"}
        return found

    def below(self, pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            for child in map(int, f.read().split()):
                yield child
                yield from self.below(child)

    def power_off(self):
        """All at once, and the disk first."""
        self.cut_at = time.time()
        self.disk.cut()
        ours = [self.up.pid, *self.below(self.up.pid)]
        end = time.time() + 120
        while ours or (ours := self.processes()):
            for pid in ours:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            ours = ()
            if time.time() > end:
                raise RuntimeError("processes stay: %s" % self.processes())
            time.sleep(0.02)
        self.up.wait()
        for path in sorted(glob.glob("/sys/fs/cgroup/**/%s/**/" % self.group, recursive=True), key=len, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(path)

    def shut_down(self):
        """As a host that is told to: everything reaches the disk."""
        self.cove("kill", "--all")
        self.up.terminate()
        self.up.wait(60)
