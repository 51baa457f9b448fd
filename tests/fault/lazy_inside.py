"""lazy_inside.py - holds much memory and answers questions about it: a file /tmp/ask/N-WHAT is one, a line "N-WHAT …" the answer."""
import mmap
import os
import sys
import time
import zlib

data = bytearray(os.urandom(int(sys.argv[1]) << 20))
area = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
area.write(os.urandom(len(area)))


def digest(what):
    return zlib.crc32(what)  # quick also where a processor is emulated


want, want_area, seen = digest(data), digest(area), set()


def hash_all():
    return digest(data) == want and digest(area) == want_area


def in_child():
    """The child sees all of it, and what it writes its parent does not see."""
    children = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            good = hash_all()
            for at in range(0, len(data), 1 << 20):
                data[at] ^= 0xff
            os._exit(0 if good and digest(data) != want else 3)
        children.append(pid)
    return [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0] and hash_all()


def change():
    """Memory that is moved, given back and unmapped while the rest still comes."""
    global area, want_area
    page = mmap.PAGESIZE
    area.madvise(mmap.MADV_DONTNEED, 64 * page, 64 * page)
    area.resize(64 << 20)
    zeros = area[64 * page:128 * page] == bytes(64 * page) and area[16 << 20:] == bytes(48 << 20)
    area.resize(16 << 20)
    area.seek(0)
    area.write(os.urandom(len(area)))
    want_area = digest(area)
    return zeros


DEEDS = {"ping": lambda: data[4321] >= 0, "hash": hash_all, "fork": in_child, "change": change}

print("ready", flush=True)
while True:
    for name in sorted(n for n in os.listdir("/tmp/ask") if n not in seen):
        seen.add(name)
        print(name, DEEDS[name.split("-")[1]](), flush=True)
    time.sleep(0.005)
