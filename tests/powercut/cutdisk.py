"""A disk that loses what was not flushed: QEMU's blklogwrites writes every write and every flush into a log, in their order.

A power cut is kill -9 of the process that has the disk. The disk that the next boot finds is the one of the boot before and
the log up to its last flush; with `torn`, some of the writes behind that flush as well, as a disk with a cache may have
brought them to its platters in any order. Writes are whole sectors of 512 bytes, or not there.

A whole machine in QEMU has such a disk itself (vm.py). On this host it is ext4 on a loop device, on a file that
qemu-storage-daemon shows by FUSE (machine.py)."""
import os
import shutil
import signal
import struct
import subprocess
import time

FLUSH, FUA, DISCARD = 1, 2, 4
MAGIC = 0x6A736677736872


def entries(path):
    """(sector, count, flags, data) of each whole entry; the head's own count is old after a kill."""
    with open(path, "rb") as f:
        magic, version, _, size = struct.unpack("<QQQI", f.read(28))
        assert (magic, version) == (MAGIC, 1), "no log of blklogwrites"
        f.seek(size)
        while len(head := f.read(size)) == size:
            sector, count, flags, _ = struct.unpack_from("<QQQQ", head)
            data = b"" if flags & DISCARD else f.read(count * size)
            if len(data) < (0 if flags & DISCARD else count * size):
                return
            yield sector * size, count * size, flags, data


def replay(log, image, torn, rng):
    """Returns how many writes the cut lost, and how many of those behind the last flush it spared."""
    held, lost, spared = [], 0, 0
    with open(image, "r+b") as f:
        def put(entry):
            at, count, flags, data = entry
            f.seek(at)
            f.write(bytes(count) if flags & DISCARD else data)

        for entry in entries(log):
            if entry[1]:
                held.append(entry)
            if entry[2] & FLUSH or entry[2] & FUA:
                [put(e) for e in held]
                held = []
        for entry in held:
            if torn and rng.random() < 0.5:
                put(entry)
                spared += 1
            else:
                lost += 1
    return lost, spared


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout.strip()


class LoggedDisk:
    def __init__(self, work):
        self.image, self.next, self.log = work + "/disk", work + "/disk.next", work + "/writes"

    def logged(self):
        """For the next boot: the nodes of QEMU whose last, `both`, is the disk."""
        run("cp", "--sparse=always", self.image, self.next)
        open(self.log, "w").close()
        # The host stays up, so nothing has to reach its own disk: a flush is an entry of the log, and costs no more.
        file = "driver=file,cache.no-flush=on,node-name="
        return (file + "disk,filename=" + self.image, file + "log,filename=" + self.log,
                "driver=blklogwrites,node-name=both,file=disk,log=log")

    def wait_for_write(self, seconds):
        """Until something is being written, or so long: then the cut finds writes that are not flushed yet."""
        end, size = time.time() + seconds, os.path.getsize(self.log)
        while time.time() < end and os.path.getsize(self.log) == size:
            time.sleep(0.0002)

    def off(self, torn, rng):
        """Behind the cut: the disk as the next boot finds it."""
        size = os.path.getsize(self.log)
        lost, spared = replay(self.log, self.next, torn, rng)
        shutil.move(self.next, self.image)
        return size, lost, spared

    def clean(self):
        pass


class CutDisk(LoggedDisk):
    def __init__(self, work, size="6G"):
        super().__init__(work)
        self.shown = work + "/shown"
        self.daemon = self.loop = None
        run("truncate", "-s", size, self.image)
        run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", "-i", "65536", self.image)
        open(self.shown, "w").close()

    def on(self):
        """The loop device, to be mounted."""
        nodes = [word for node in self.logged() for word in ("--blockdev", node)]
        self.daemon = subprocess.Popen(
            ["qemu-storage-daemon", *nodes, "--export", "type=fuse,id=shown,node-name=both,writable=on,growable=off,mountpoint=" + self.shown],
            stdin=subprocess.DEVNULL)
        end = time.time() + 60
        while os.path.getsize(self.shown) == 0:
            assert self.daemon.poll() is None and time.time() < end, "qemu-storage-daemon does not start"
            time.sleep(0.05)
        self.loop = run("losetup", "-f", "--show", self.shown)
        return self.loop

    def mounted(self):
        run("losetup", "-d", self.loop)  # with the last mount

    def cut(self):
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()

    def off(self, torn, rng):
        """Behind cut(), once nobody has it mounted: the disk as the next boot finds it."""
        end = time.time() + 120
        while self.shown in run("losetup", "-a"):
            assert time.time() < end, "the loop device stays: " + run("losetup", "-a")
            time.sleep(0.1)
        run("umount", "-l", self.shown)
        return super().off(torn, rng)

    def clean(self):
        if self.daemon and self.daemon.poll() is None:
            self.cut()
        subprocess.run(["umount", "-l", self.shown], capture_output=True)

