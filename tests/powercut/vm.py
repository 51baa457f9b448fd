"""A whole Debian in QEMU (tools/machine), cove from its package: booted, asked, and killed with SIGKILL.

Its disk is a LoggedDisk: what the guest did not flush is lost with QEMU. The host asks through two ports that QEMU forwards
to tests/powercut/door.py in the guest; the guest reaches nothing."""
import http.client
import json
import os
import socket
import subprocess
import time
import types

from cutdisk import LoggedDisk
from machine import Asked

TOOL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tools/machine")
INSIDE = "tests/powercut/inside"
# Units that cove has nothing to do with: each takes an emulated boot a second or more.
NEEDLESS = ("systemd-logind.service", "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service", "e2scrub_reap.service",
            "systemd-networkd.service", "systemd-resolved.service", "systemd-timesyncd.service", "systemd-user-sessions.service",
            "systemd-pstore.service", "modprobe@drm.service", "modprobe@efi_pstore.service")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class VirtualMachine(Asked):
    patience, load_seconds = 600, 600  # emulated, on a busy host

    def __init__(self, work, debian):
        super().__init__(work, LoggedDisk(work))
        self.debian, self.load, self.door = debian, work + "/load", None
        accel = subprocess.run([TOOL, "accel", debian], check=True, capture_output=True, text=True).stdout.strip()
        masks = " ".join("systemd.mask=" + unit for unit in NEEDLESS)
        self.env = {**os.environ, "COVE_MACHINE_ACCEL": accel, "TMPDIR": work,
                    "COVE_MACHINE_APPEND": masks + " " + os.environ.get("COVE_MACHINE_APPEND", "")}
        subprocess.run([TOOL, "copy", debian, self.disk.image], check=True)
        subprocess.run([TOOL, "load", debian, self.load, INSIDE], check=True)

    def boot(self):
        """Returns the seconds until the server answered."""
        begin, self.cut_at, self.port, self.door = time.time(), None, free_port(), free_port()
        nodes = [word for node in self.disk.logged() for word in ("-blockdev", node)]
        forward = ["hostfwd=tcp:127.0.0.1:%d-:%d" % pair for pair in ((self.port, 8000), (self.door, 8001))]
        with open(self.logs, "ab") as log:
            self.up = subprocess.Popen(
                [TOOL, "exec", self.debian, *nodes, "-device", "virtio-blk-pci,drive=both,write-cache=on",
                 "-drive", "if=virtio,format=raw,cache=unsafe,snapshot=on,file=" + self.load,
                 "-netdev", "user,id=net,restrict=on," + ",".join(forward), "-device", "virtio-net-pci,netdev=net"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)
        while not self.answers():
            if self.up.poll() is not None or time.time() > begin + 1200:
                raise RuntimeError("%s does not start" % self.debian)
            time.sleep(1)
        return time.time() - begin

    def answers(self):
        try:
            return self.ask("GET", "/health", timeout=10)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def cove(self, *args):
        with socket.create_connection(("127.0.0.1", self.door), timeout=self.patience) as s:
            s.sendall(json.dumps(args).encode() + b"\n")
            with s.makefile() as f:
                return types.SimpleNamespace(**json.load(f))

    def power_off(self):
        self.cut_at = time.time()
        self.up.kill()
        self.up.wait()

    def shut_down(self):
        self.power_off()
