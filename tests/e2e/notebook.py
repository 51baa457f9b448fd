"""Runs the cells of notebook_cells.py in a sandbox and judges what comes of each. Used by interpreter.py and interpreter_data.py."""
import notebook_cells


class Got:
    """What a cell gave, from the events of its execution."""

    def __init__(self, events):
        self.results = [e for e in events if e["type"] == "result"]
        self.out = "".join(e["text"] for e in events if e["type"] == "stdout")
        self.err = "".join(e["text"] for e in events if e["type"] == "stderr")
        self.error = next((e for e in events if e["type"] == "error"), {})
        self.last = self.results[-1] if self.results else {}
        self.main = next((r for r in self.results if r.get("is_main_result")), {})


def text_is(got, want):
    """E2B's texts have no quotes around them."""
    have = got.main.get("text")
    if callable(want):
        return want(have or "")
    return have == want or len(want) > 1 and want[0] == want[-1] and want[0] in "'\"" and have == want[1:-1]


def angles_are(got, want):
    return [e["angle"] for e in got.last["chart"]["elements"]] == want


CHECKS = {
    "text": text_is,
    "out": lambda got, want: want in got.out,
    "err": lambda got, want: want in got.err,
    "error": lambda got, want: got.error.get("name") == want,
    "value": lambda got, want: want in got.error.get("value", ""),
    "trace": lambda got, want: want in got.error.get("traceback", ""),
    "has": lambda got, want: all(name in got.last for name in want),
    "hasnt": lambda got, want: not any(name in got.last for name in want),
    "json": lambda got, want: got.last.get("json") == want,
    "data": lambda got, want: got.last.get("data") == want,
    "chart": lambda got, want: (got.last.get("chart") or {}).get("type") == want,
    "angles": angles_are,
    "results": lambda got, want: len(got.results) == want,
    "any": lambda got, want: True,
    "cjk": lambda got, want: "[]" in got.out,
}
SHOWS = {"text", "has", "json", "data", "chart", "results", "any", "hasnt"}


def wrong(got, want):
    """The first thing that is not as it should be; None: all is."""
    for name, value in want.items():
        if not CHECKS[name](got, value):
            return name
    if "any" in want:
        return None
    if "error" not in want and got.error:
        return "error"
    if not SHOWS & set(want) and got.main:
        return "a result"
    return None


def run_all(run, check, modules, skip):
    """run(code) gives events; modules: which of those that are asked for can be imported; skip(group): leave it out."""
    for group, rows in notebook_cells.ALL:
        if skip(group):
            continue
        for sentence, code, want, *needs in rows:
            if any(m not in modules for m in needs):
                continue
            got = Got(run(code))
            bad = wrong(got, want)
            check("cell, %s: %s" % (group, sentence), bad is None,
                  (bad, code, got.main.get("text", "")[:200], got.out[:200], got.err[:200], got.error.get("name"),
                   got.error.get("value", "")[:200], [sorted(r) for r in got.results]))


NEEDED = ["IPython", "numpy", "pandas", "matplotlib", "PIL"]
OPTIONAL = sorted({row[3] for row in notebook_cells.MORE})
PROBE = """import glob
from importlib.machinery import PathFinder
print('\\n'.join([m for m in %r if PathFinder.find_spec(m)] + ['CJK font'] * bool(glob.glob('/usr/share/fonts/*/*/*CJK*'))))
""" % (NEEDED + OPTIONAL)
