"""images_of.py KIND OUT [docker|oci|layout] [none|gzip|zstd]: the images of image_test, good and hostile.

images_of.py listing DIR, images_of.py expected: the tree of `small`, as it is and as it must be."""
import os
import random
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from images import Image, entry, layer, sha, write, write_archive, write_layout  # noqa: E402

BUSYBOX = open("/bin/busybox", "rb").read() if os.path.exists("/bin/busybox") else b""
PASSWD = b"root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n"


def small_layers():
    first = [entry("bin", "dir"), entry("bin/busybox", data=BUSYBOX, mode=0o755), entry("bin/sh", "link", target="busybox"),
             entry("etc", "dir"), entry("etc/passwd", data=PASSWD), entry("etc/group", data=b"root:x:0:\nnode:x:1000:\n"),
             entry("tmp", "dir", mode=0o1777), entry("app", "dir", uid=1000, gid=1000),
             entry("app/data", data=b"original\n", uid=1000, gid=1000),
             entry("lib", "link", target="usr/lib"), entry("usr/lib", "dir"), entry("lib/through", data=b"a link\n"),
             entry("gone/a", data=b"a"), entry("gone/b", data=b"b"),
             entry("color", data=b"x" * 5000, pax={"SCHILY.xattr.user.color": "blue", "SCHILY.xattr.trusted.overlay.opaque": "y"}),
             entry("-first", data=b""), entry("long/" + "n" * 200, data=b"n")]
    first += [entry("many/f%04d" % i, data=b"y" * i) for i in range(0, 5000, 7)]
    second = [entry("gone/.wh.a"), entry("hard", "hard", target="color"), entry("many/.wh.f0007"), entry("lib/two", data=b"two"),
              entry("many/f0014", data=b"replaced" * 1000)]
    return [layer(first), layer(second)]


def small(how, marker="A=b c"):
    return Image(small_layers(), how, Env=["PATH=/bin", marker], Entrypoint=["/bin/busybox", "echo"],
                 Cmd=["hello", "from the image"], WorkingDir="/app", User="node")


def one(entries, how, **run):
    return Image([layer(entries)], how, **run)


ALONE = [entry("busybox", data=BUSYBOX, mode=0o755)]

HOSTILE = {
    "dotdot": [entry("a/../../etc/x", data=b"x")],
    "whiteout-dotdot": [entry("dir", "dir"), entry("dir/.wh...")],
    "hard-out": [entry("x", "hard", target="../../etc/passwd")],
    "hard-missing": [entry("x", "hard", target="/etc/shadow")],
    "big-owner": [entry("x", data=b"x", uid=3000000)],
    "deep": [entry("/".join(["d"] * 300), "dir")],
    "nodes": [entry("c", "char", major=1, minor=3), entry("b", "block", major=8), entry("p", "fifo"),
              entry("su", data=b"x", mode=0o4755)] + ALONE,
}


def links(how):
    low = layer([entry("out", "link", target="/tmp/cove-image-outside"), entry("abs", "link", target="/../../../../../..")] + ALONE)
    return Image([low, layer([entry("out/file", data=b"inside"), entry("abs/tmp/also", data=b"x")])], how)


def bomb(how):
    return Image([layer([entry("big", data=b"\0" * (64 << 20))])], how)


def wide_window():
    """A frame that asks for a window of 1 GiB."""
    plain = layer([entry("x", data=b"x")])
    image = Image([plain], "none")
    image.packed = [subprocess.run(["zstd", "-q", "-c", "--long=30", "--ultra", "-22"], input=plain + b"\0" * (1 << 20),
                                   stdout=subprocess.PIPE, check=True).stdout]
    # The window is in the frame's head: the byte behind the magic number and the descriptor.
    head = bytearray(image.packed[0])
    head[4] &= 0x1f  # no content size, no single segment
    image.packed = [bytes(head[:5]) + bytes([20 << 3]) + bytes(head[6:])]
    return image


def wide(count):
    """A layer with that many empty files in one directory: headers by hand, since tarfile takes its time."""
    start = bytearray(entry("d/0000000")[0].tobuf(tarfile.USTAR_FORMAT))
    out = []
    for i in range(count):
        name = b"%07d" % i
        block = bytearray(start)
        block[2:9] = name
        block[148:156] = b"%06o\0 " % (sum(start) - sum(start[148:156]) + 8 * 32 + sum(name) - 7 * 48)
        out.append(bytes(block))
    return b"".join(out) + b"\0" * 1024


def python(how):
    """What stands in for python:3.12-slim: `pip install NAME` makes a program of that name."""
    programs = {"bin/bash": 'exec /bin/sh "$@"', "usr/local/bin/python3": '[ "$1" != -m ] || exec "$2"\necho Python 3.12.0',
                "usr/local/bin/pip": 'echo "#!/bin/sh\necho $2 1.0" >/usr/local/bin/$2\nchmod 755 /usr/local/bin/$2'}
    tree = [entry("bin", "dir"), entry("bin/busybox", data=BUSYBOX, mode=0o755), entry("etc", "dir"), entry("tmp", "dir", mode=0o1777),
            entry("usr/local/bin", "dir", mode=0o777)]
    tree += [entry("bin/" + name, "link", target="busybox") for name in ["sh", "cat", "chmod", "echo", "id", "ls", "mkdir"]]
    tree += [entry(path, data=b"#!/bin/sh\n%s\n" % text.encode(), mode=0o755) for path, text in programs.items()]
    return one(tree, how, Env=["PATH=/usr/local/bin:/usr/bin:/bin"], Cmd=["python3"])


def block(name):
    """Content enough for a file of its own: the same for the same name."""
    return entry("blocks/" + name, data=random.Random(name).randbytes(33 << 20))


def one_above_the_other(app):
    """Layers that change what is below a cut in every way there is, twice over: two large ones, and a small one of the app's own."""
    low = [entry("bin", "dir"), entry("bin/busybox", data=BUSYBOX, mode=0o755), entry("bin/sh", "link", target="busybox"),
           entry("etc", "dir"), entry("etc/passwd", data=PASSWD), entry("etc/group", data=b"root:x:0:\nnode:x:1000:\n"),
           entry("tmp", "dir", mode=0o1777), block("low"),
           entry("same/deep", "dir", uid=1000, gid=1000), entry("same/deep/a", data=b"a"), entry("same/deep/b", data=b"b" * 5000), entry("owned", "dir"), entry("owned/f", data=b"f"),
           entry("owned/sub/g", data=b"g"), entry("gone/one", data=b"1"), entry("gone/two", data=b"2"), entry("gone/dir/x", data=b"x"),
           entry("hidden/one", data=b"1"), entry("hidden/dir/two", data=b"2"), entry("dir-file/in", data=b"in"), entry("file-dir", data=b"file"),
           entry("dir-file-dir/old", data=b"old"), entry("dir-file-dir/sub/old", data=b"old"), entry("file-dir-file", data=b"first"),
           entry("dir-link/f", data=b"f"), entry("lib", "link", target="usr/lib"), entry("usr/lib", "dir"), entry("lib/first", data=b"1"),
           entry("names/a", data=b"n" * 7000), entry("names/b", "hard", target="names/a"), entry("names/c", "hard", target="names/a"),
           entry("pair/a", data=b"p" * 3000), entry("pair/b", "hard", target="pair/a"), entry("replaced", data=b"old"),
           entry("color", data=b"x" * 5000, pax={"SCHILY.xattr.user.color": "blue"}), entry("empty/dir", "dir"),
           entry("empty-a"), entry("empty-b", "hard", target="empty-a")]
    middle = [entry("owned", "dir", mode=0o700, uid=1000, gid=1000), entry("gone/.wh.one"), entry("gone/.wh.dir"),
              entry("hidden/.wh..wh..opq"), entry("hidden/new", data=b"n"), entry("dir-file", data=b"now a file"),
              entry("file-dir", "dir"), entry("file-dir/in", data=b"in"), entry("dir-file-dir", data=b"a file meanwhile"),
              entry("file-dir-file", "dir"), entry("file-dir-file/in", data=b"in"), entry("dir-link", "link", target="usr"),
              entry("lib/second", data=b"2"), entry("across", "hard", target="names/a"), entry("pair/.wh.b"),
              entry("replaced", data=b"new" * 3000), entry("colored", "hard", target="color"), entry(".wh.empty"), block("middle")]
    top = [entry(".wh.dir-file-dir"), entry("dir-file-dir/new", data=b"new"), entry("dir-file-dir/sub", "dir"), entry("file-dir-file", data=b"last"),
           entry("names/.wh.b"), entry("names/d", "hard", target="across"), entry("gone/one", data=b"again"), entry(".wh.hidden"),
           entry("lib/third", "hard", target="lib/first"), entry("owned/sub", "dir", mode=0o750), entry("empty/dir/again", data=b"x"),
           entry("pair/b", data=b"another"), entry("app", data=app.encode())]
    return [layer(entries) for entries in (low, middle, top)]


def above(app, how, large=False):
    layers = one_above_the_other(app)
    if large:  # one layer more, which is a file of its own, too
        layers.append(layer([entry("blocks/.wh.low"), block("top"), entry(".wh.same")]))
    return Image(layers, how, Env=["PATH=/bin"], Cmd=["/bin/busybox", "cat", "/app"], User="node")


def make(kind, how):
    if kind in ("app-one", "app-two", "app-large"):
        return above(kind, how, kind == "app-large")
    if kind == "app-low":  # the lowest layer alone
        return Image(one_above_the_other(kind)[:1], how, User="node")
    if kind == "python":
        return python(how)
    if kind == "wide":
        return Image([wide(100001)], "none")
    if kind == "small":
        return small(how)
    if kind == "empty":
        return one([entry("data", data=b"x")], how)
    if kind == "bare":
        return one(ALONE, how, User="65532:65532", Env=["GOPATH=/go"])
    if kind == "links":
        return links(how)
    if kind == "large":  # a file that is worth sharing
        return one(ALONE + [entry("large", data=os.urandom(32 << 20))], how)
    if kind == "slow":  # enough to be caught in the middle
        return one([entry("f%d" % i, data=os.urandom(4 << 20)) for i in range(40)], how)
    if kind in ("gzip-bomb", "zstd-bomb"):
        return bomb(how)
    if kind == "zstd-window":
        return wide_window()
    if kind == "arm":
        return Image([layer(ALONE)], how, architecture="arm64")
    if kind == "unknown-user":
        return one(ALONE, how, User="whoever")
    if kind == "garbage":
        return Image([b"not a tar" * 1000], how)
    if kind in HOSTILE:
        return one(HOSTILE[kind], how)
    return small(how, "SPOILED=1")  # another image than the good one, which may be here already


def spoil(kind, image, files):
    """Documents and layers that are not what they say."""
    packed = "blobs/sha256/" + sha(image.packed[0])
    if kind == "wrong-size":
        files[packed] += b"\0"
    if kind == "no-layer":
        del files[packed]
    return files


def main():
    kind, out = sys.argv[1], sys.argv[2]
    form = sys.argv[3] if len(sys.argv) > 3 else "oci"
    how = sys.argv[4] if len(sys.argv) > 4 else "gzip"
    if kind == "wrong-digest":  # the same size, another content
        image = small("none", "SPOILED=1")
        files = image.files()
        name = "blobs/sha256/" + sha(image.packed[0])
        files[name] = files[name].replace(b"original", b"0riginal")
        return write_archive(out, files)
    if kind == "wrong-diff":
        image = small("none", "SPOILED=1")
        image.config = image.config.replace(sha(image.plain[0]).encode(), b"0" * 64)
        return write_archive(out, image.files())
    if kind == "wrong-config":
        image = small(how, "SPOILED=1")
        files = image.files()
        files["blobs/sha256/" + sha(image.config)] = image.config.replace(b"node", b"root")
        return write_archive(out, files)
    if kind == "truncated":
        image = small("gzip", "SPOILED=1")
        image.packed[0] = image.packed[0][:len(image.packed[0]) // 2]
        return write_archive(out, image.files())
    image = make(kind, how)
    if form == "layout" or kind == "wrong-size":
        files = spoil(kind, image, image.files())
        return write_layout(out, files) if form == "layout" else write_archive(out, files)
    return write(image, out, form)


def listing(root, merged=False):
    """Everything but what cove adds. merged: overlayfs does not count the links of directories."""
    ours = ("opt", "home", "root", "run", "workspace", "dev", "proc", "sys")
    for path, dirs, names in os.walk(root):
        dirs.sort()
        for name in sorted(dirs + names):
            full = os.path.join(path, name)
            short = os.path.relpath(full, root)
            if short.split("/")[0] in ours or short in ("etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/machine-id"):
                continue
            st = os.lstat(full)
            what = os.readlink(full) if os.path.islink(full) else sha(open(full, "rb").read()) if os.path.isfile(full) else ""
            color = os.getxattr(full, "user.color").decode() if "user.color" in os.listxattr(full, follow_symlinks=False) else ""
            links = "-" if merged and os.path.isdir(full) and not os.path.islink(full) else st.st_nlink
            print(short, oct(st.st_mode), st.st_uid, st.st_gid, links, what, color)


def expected():
    """The same, by umoci's rules, written out by Python: the two layers unpacked over each other."""
    import io
    import tarfile
    import tempfile
    with tempfile.TemporaryDirectory() as root:
        for data in small_layers():
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                for info in tar:
                    base = os.path.basename(info.name)
                    if base.startswith(".wh."):
                        os.unlink(os.path.join(root, os.path.dirname(info.name), base[4:]))
                        continue
                    full = os.path.join(root, info.name)
                    os.makedirs(os.path.dirname(full), exist_ok=True)
                    if os.path.lexists(full) and not info.isdir():
                        os.unlink(full)
                    tar.extract(info, root, numeric_owner=True)
                    color = info.pax_headers.get("SCHILY.xattr.user.color")
                    if color:
                        os.setxattr(full, "user.color", color.encode())
        listing(root)


if __name__ == "__main__":
    if sys.argv[1] in ("listing", "merged"):
        listing(sys.argv[2], sys.argv[1] == "merged")
    elif sys.argv[1] == "expected":
        expected()
    else:
        main()
