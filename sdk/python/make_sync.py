#!/usr/bin/env python3
"""Makes the blocking client src/cove/_sync of the asyncio client src/cove/_async, by replacing words.

    sdk/python/make_sync.py           writes the files
    sdk/python/make_sync.py --check   ends with 1 if they are not what they should be
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).parent / "src/cove/_async"
MADE = SOURCE.parent / "_sync"
NOTE = "# Made of _async/%s by sdk/python/make_sync.py. Change that file, then run it.\n"
WORDS = [
    (r"async (def|with|for) ", r"\1 "),
    (r"\bawait ", ""),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\bAsyncExitStack\b", "ExitStack"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAsync(Iterator|Iterable|Generator)\b", r"\1"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\b_io_async\b", "_io_sync"),
    (r"\b_async\b", "_sync"),
    (r"\basyncio\b", "blocking"),
    (r"\baclose\b", "close"),
    (r"\banext\(", "next("),
    (r"\baiter\(", "iter("),
]


def made(path: pathlib.Path) -> str:
    text = path.read_text()
    for word, other in WORDS:
        text = re.sub(word, other, text)
    lines = text.split("\n")
    imports: list[str] = []
    for line in lines:  # two words may have become one
        if line.startswith("from ") and " import " in line and "(" not in line:
            start, names = line.split(" import ")
            line = start + " import " + ", ".join(dict.fromkeys(names.split(", ")))
        imports.append(line)
    return NOTE % path.name + "\n".join(imports)


def main() -> int:
    wrong = 0
    for path in sorted(SOURCE.glob("*.py")):
        target, text = MADE / path.name, made(path)
        if sys.argv[1:] == ["--check"]:
            if not target.exists() or target.read_text() != text:
                print(f"{target} is not what make_sync.py makes of {path}", file=sys.stderr)
                wrong = 1
        else:
            MADE.mkdir(exist_ok=True)
            target.write_text(text)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
