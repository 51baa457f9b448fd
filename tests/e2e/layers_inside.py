"""Runs in a sandbox: says what is there, one line for each file, everything about it that a copy must have; does to the
files what overlays find hard, at random by the number that it is given; and says what is there then."""

import hashlib
import os
import random
import shutil
import stat
import sys

ROOTS = ["/etc/alternatives", "/opt/own", "/dev/shm"]  # of the template, of its own, shared memory


def everything():
    for root in ROOTS:
        for at, dirs, files in os.walk(root):
            yield at
            for name in files + [d for d in dirs if os.path.islink(os.path.join(at, d))]:
                yield os.path.join(at, name)


def look():
    for path in sorted(everything()):
        st = os.lstat(path)
        kind = stat.S_IFMT(st.st_mode)
        what = ""
        if kind == stat.S_IFLNK:
            what = os.readlink(path)
        elif kind == stat.S_IFREG:
            what = hashlib.sha256(open(path, "rb").read()).hexdigest()[:16]
        extra = {n: os.getxattr(path, n, follow_symlinks=False) for n in os.listxattr(path, follow_symlinks=False)}
        if path in ROOTS and kind == stat.S_IFDIR:  # their size and times are the overlay's own business
            print(path, oct(st.st_mode), st.st_uid, st.st_gid)
            continue
        print(path, oct(st.st_mode), st.st_uid, st.st_gid, st.st_size if kind == stat.S_IFREG else "", st.st_mtime_ns, sorted(extra.items()), what)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def change(seed):
    r = random.Random(seed)
    own = "/opt/own"
    os.makedirs(own, exist_ok=True)
    write("/dev/shm/seen%d" % (seed % 3), "shared %d" % seed)
    for n in range(40):
        there = sorted(p for p in everything() if p not in ROOTS)
        dirs = [p for p in there if os.path.isdir(p) and not os.path.islink(p) and not p.startswith("/dev")] + [own, "/etc/alternatives"]
        files = [p for p in there if os.path.isfile(p) and not os.path.islink(p) and not p.startswith("/dev")]
        single = [p for p in files if os.lstat(p).st_nlink == 1]  # of several names only one is changed below: docs/pause.md
        new = os.path.join(r.choice(dirs), "n%d-%d" % (seed, n))
        victim = r.choice(there) if there else new
        deed = r.randrange(13)
        if deed <= 2:
            write(new, "text %d " % n * r.randrange(1, 2000))
        elif deed == 3:
            os.makedirs(new + "/a/b")
            write(new + "/a/b/deep", "deep")
        elif deed == 4 and single:
            write(r.choice(single), "changed %d" % n)
        elif deed == 5:  # what was a directory may be a file then, and the other way round
            gone(victim)
            if r.randrange(2):
                os.makedirs(victim + "/again", exist_ok=True)
            elif not os.path.exists(victim):
                write(victim, "was something else")
        elif deed == 6:
            gone(victim)
        elif deed == 7 and files:
            os.link(r.choice(files), new)
        elif deed == 8:
            os.symlink(victim, new)
        elif deed == 9 and single:
            os.setxattr(r.choice(single), "user.note", os.urandom(r.randrange(1, 200)))
        elif deed == 10:
            with open(new, "wb") as f:  # a hole, and bytes behind it
                f.seek(r.randrange(1, 300) * 4096)
                f.write(b"end")
        elif deed == 11 and (victim in single or os.path.isdir(victim)) and not os.path.islink(victim):
            os.chmod(victim, 0o4755 if os.path.isfile(victim) else 0o1777)
            os.chown(victim, 1, 2)
        elif deed == 12:
            os.mkfifo(new, 0o640)
    gone(own + "/generation")  # last: which files the deeds above meet depends on the template
    write(own + "/generation", str(seed))
    d = own + "/always"  # deleted and there again, each time: what was in it must not come back
    gone(d)
    os.makedirs(d)
    write(d + "/only%d" % seed, "")


def gone(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


look()
print("----")
change(int(sys.argv[1]))
look()
