"""catch.py KEEPER NAME: waits for a child of that name, stops it (SIGSTOP) as soon as it is there, and prints its pid."""
import os, signal, sys, time

keeper, name = sys.argv[1], sys.argv[2]
until = time.monotonic() + 20
while time.monotonic() < until:
    with open(f"/proc/{keeper}/task/{keeper}/children") as f:
        for pid in f.read().split():
            try:
                with open(f"/proc/{pid}/comm") as comm:
                    if comm.read().strip() != name:
                        continue
                os.kill(int(pid), signal.SIGSTOP)
            except OSError:
                continue
            print(pid)
            sys.exit(0)
sys.exit(1)
