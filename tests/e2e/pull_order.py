"""Speaks to <state>/pull.sock as coved does (wire/pull.h).

usage: pull_order.py STATE import ARCHIVE [COUNT]   imports the archive COUNT times; the connection is closed at the last word at once.
                                                    Prints the names that were done.
       pull_order.py STATE bad                      prints how many of a row of damaged orders got an answer
"""
import array
import os
import random
import socket
import struct
import sys

MAGIC = 0x70756C31
ORDER = struct.Struct("=IIQQQ64s512s136s8192s1024s1024s304s1280s")
REPORT = struct.Struct("=IIIIQQ80s")
IMAGE, ARCHIVE, REMOVE = 1, 2, 3
DONE, FAILED = 3, 5


def order(op, name, magic=MAGIC, known=b"", hosts=b"", reference=b""):
    return ORDER.pack(magic, op, 0, 30000, 60000, name, reference, b"", b"", hosts, b"", b"", known)


def connect(state):
    fd = os.open(state, os.O_PATH | os.O_DIRECTORY)
    conn = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    conn.settimeout(60)
    conn.connect(f"/proc/self/fd/{fd}/pull.sock")
    os.close(fd)
    return conn


def last_word(conn):
    while packet := conn.recv(4096):
        word = REPORT.unpack_from(packet)[1]
        if word >= DONE:
            return word
    return 0


def new_name():
    return b"pulled.i" + "".join(random.choice("abcdefghijklmnopqrstuvwxyz234567") for _ in range(20)).encode()


def import_archive(state, path):
    name = new_name()
    conn = connect(state)
    with open(path, "rb") as archive:
        conn.sendmsg([order(ARCHIVE, name)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [archive.fileno()]))])
        word = last_word(conn)
    conn.close()
    if word == DONE:
        print(name.decode())


def answered(state, packet):
    with connect(state) as conn:
        conn.send(packet)
        return last_word(conn) != 0


def bad(state):
    good = new_name()
    packets = [b"x", order(ARCHIVE, good)[:-1], order(ARCHIVE, good, magic=1), order(0, good), order(4, good),
               order(REMOVE, b"base"), order(REMOVE, b"pulled."), order(REMOVE, b"pulled.../../base"), order(REMOVE, good + b"/x"),
               order(REMOVE, b"x" * 64), order(REMOVE, good, hosts=b"a\nb"), order(REMOVE, good, known=b"x")]
    print(sum(answered(state, packet) for packet in packets))


if sys.argv[2] == "import":
    for _ in range(int(sys.argv[4]) if len(sys.argv) > 4 else 1):
        import_archive(sys.argv[1], sys.argv[3])
else:
    bad(sys.argv[1])
