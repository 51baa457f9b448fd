"""memory_has.py - which of some words the memory of a process has, one line for each place.

   memory_has.py PID WORD…"""
import re
import sys

pid, words = sys.argv[1], [word.encode() for word in sys.argv[2:]]
seen = 0
with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
    for line in maps:
        first, last, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
        if not rights.startswith("rw"):
            continue
        memory.seek(int(first, 16))
        held = memory.read(int(last, 16) - int(first, 16))
        seen += len(held)
        for word in words:
            for found in re.finditer(re.escape(word), held):
                print(f"{word.decode()} at {int(first, 16) + found.start():x}")
if not seen:
    sys.exit(f"{pid} has no memory")
