"""Frames, figures and charts in the template code-interpreter-v1. Run by tests/e2e/interpreter_data_test."""
import base64
import json
import os
import time

import harness
import notebook
from harness import ask, check, same


class Box:
    def __init__(self):
        a = ask("POST", "/v2/sandboxes", {"templateID": "code-interpreter-v1", "timeout": 600},
                headers={"Content-Type": "application/json"})
        assert a.status == 201, a.body
        self.id, self.token = a.json["sandboxID"], a.json["envdAccessToken"]

    def run(self, code, **more):
        a = ask("POST", "/execute", {"code": code, **more}, headers={
            "E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49999", "X-Access-Token": self.token})
        self.events = events = [json.loads(line) for line in a.body.splitlines()]
        for e in events:
            if e["type"] == "error":
                print("# %s: %s" % (e["name"], e["value"][:200]))
        return [e for e in events if e["type"] == "result"]


b = None
PLT = "import matplotlib.pyplot as plt\n"


def frames():
    got = b.run("import pandas as pd, numpy as np\n"
                "pd.DataFrame({'a': [1, 2], 'b': ['x', None], 'c': [1.5, np.nan],"
                " 't': pd.to_datetime(['2024-01-02', '2024-01-03'])})")[0]
    check("a frame has text and html", "a" in got["text"] and got["html"].startswith("<div"), got)
    same("a frame has data", {"a": [1, 2], "b": ["x", None], "c": [1.5, None],
                      "t": ["2024-01-02T00:00:00", "2024-01-03T00:00:00"]}, got["data"])
    check("a series is text", "dtype" in b.run("pd.Series([1])")[0]["text"])
    check("numbers of numpy", "5" in b.run("np.int64(5)")[0]["text"])
    same("an image", b"\x89PNG", base64.b64decode(b.run("from PIL import Image\nImage.new('RGB', (3, 3))")[0]["png"])[:4])


def figures():
    got = b.run(PLT + "plt.plot([1, 2, 3], [4, 5, 6], label='one')\nplt.title('T')\nplt.xlabel('x (s)')\nplt.ylabel('y')\n"
                      "plt.show()\nprint('after')")
    same("a figure is shown once", 1, len(got))
    same("a figure is a picture", b"\x89PNG", base64.b64decode(got[0]["png"])[:4])
    chart = got[0]["chart"]
    same("a line chart", ("line", "T", "x (s)", "y", "s", None, "linear"),
         tuple(chart[k] for k in ("type", "title", "x_label", "y_label", "x_unit", "y_unit", "x_scale")))
    same("a line chart has its points", [{"label": "one", "points": [[1, 4], [2, 5], [3, 6]]}], chart["elements"])
    check("a line chart has its ticks", chart["x_ticks"] and len(chart["x_ticks"]) == len(chart["x_tick_labels"]), chart)
    chart = b.run(PLT + "plt.scatter([1, 2], [3, 4], label='s');")[0]["chart"]
    same("a scatter chart, without show()", ("scatter", [{"label": "s", "points": [[1, 3], [2, 4]]}]),
         (chart["type"], chart["elements"]))
    chart = b.run(PLT + "plt.bar(['a', 'b'], [1, 2], label='g');")[0]["chart"]
    same("a bar chart", ("bar", [{"label": "a", "group": "g", "value": 1}, {"label": "b", "group": "g", "value": 2}]),
         (chart["type"], chart["elements"]))
    chart = b.run(PLT + "plt.pie([1, 3], labels=['a', 'b']);")[0]["chart"]
    same("a pie chart", ("pie", ["a", "b"], [90, 270], [1, 1]),
         (chart["type"], [e["label"] for e in chart["elements"]], [round(e["angle"]) for e in chart["elements"]],
          [e["radius"] for e in chart["elements"]]))
    chart = b.run(PLT + "plt.boxplot([[1, 2, 3, 4, 50]], labels=['a']);")[0]["chart"]
    same("a box plot", ("box_and_whisker", [{"label": "a", "min": 1, "first_quartile": 2, "median": 3, "third_quartile": 4,
                                             "max": 4, "outliers": [50]}]), (chart["type"], chart["elements"]))
    chart = b.run(PLT + "f, (p, q) = plt.subplots(1, 2)\np.plot([1], [2])\nq.bar(['a'], [1])\nf.suptitle('S');")[0]["chart"]
    same("several axes are a superchart", ("superchart", "S", ["line", "bar"]),
         (chart["type"], chart["title"], [e["type"] for e in chart["elements"]]))
    chart = b.run(PLT + "import datetime as d\nplt.plot([d.date(2024, 1, 1), d.date(2024, 1, 2)], [1, 2])\nplt.yscale('log');")[0]["chart"]
    same("dates and logarithms", ("datetime", "log"), (chart["x_scale"], chart["y_scale"]))
    check("a date is a text", chart["elements"][0]["points"][0][0].startswith("2024-01-01"), chart["elements"])
    same("what is no chart", "unknown", b.run(PLT + "plt.imshow([[1, 2]]);")[0]["chart"]["type"])
    got = b.run("import seaborn as sns\nsns.barplot(x=['a', 'b'], y=[1, 2]);")
    same("seaborn's bars", "bar", got[0]["chart"]["type"])


def ipython():
    got = b.run("from IPython.display import display, HTML, Markdown, Image\ndisplay(HTML('<b/>'), Markdown('# m'))")
    same("IPython's own display functions lead here", ["<b/>", "# m"], [got[0].get("html"), got[1].get("markdown")])
    same("IPython.get_ipython() is the kernel's", "True", b.run("import IPython\nIPython.get_ipython() is get_ipython()")[0]["text"])
    got = b.run("import sympy\nsympy.Symbol('x')**2")[0]
    check("sympy has latex", "x^{2}" in got.get("latex", ""), got)


def typescript():
    got = b.run("interface P { name: string }\nconst p: P = { name: 'x' };\nenum E { A = 1 }\np.name + (E.A as number)", language="typescript")
    same("typescript", "x1", got[0]["text"] if got else None)
    got = b.run("const v: number = await Promise.resolve(3 as number)\nv", language="ts")
    same("typescript with await", "3", got[0]["text"] if got else None)


def limits():
    """What programs of the template take for their share, in a sandbox of one core and 512 MiB."""
    a = ask("POST", "/v1/run", {"template": "code-interpreter-v1", "limits": {"memory": "512m", "cpus": 1}, "timeout": 60, "command": r"""nproc
        python3 -c 'import os; print(os.cpu_count(), os.process_cpu_count())'
        node -p 'os.cpus().length + " " + os.totalmem() / 1048576'
        printf 'class A { public static void main(String[] a) { var r = Runtime.getRuntime(); System.out.println(r.availableProcessors() + " " + (r.maxMemory() >> 20 <= 128)); } }' > A.java
        java A.java"""})
    same("nproc, python, node and java see the sandbox's limits", "1\n1 1\n1 512\n1 true\n", a.json.get("stdout"))


def notebooks():
    n = Box()
    n.run(notebook.PROBE)
    modules = notebook.Got(n.events).out.splitlines()
    same("the template has every module of the battery, and letters of every language", [],
         sorted(set(notebook.NEEDED + notebook.OPTIONAL + ["CJK font"]) - set(modules)))
    notebook.run_all(lambda code: n.run(code) and n.events or n.events, check, modules, lambda group: False)
    same("the battery's sandbox is killed", 204, ask("DELETE", "/sandboxes/" + n.id).status)


FRAME = "import pandas as pd, matplotlib.pyplot as plt\npd.DataFrame({'a': [1, 2]})"


def first_cell():
    """The milliseconds that the first cell of a new sandbox takes."""
    n = Box()
    begun = time.monotonic()
    got = n.run(FRAME)
    took = round((time.monotonic() - begun) * 1000)
    same("the first cell of a new sandbox has its frame", [1, 2], got[0]["data"]["a"] if got else None)
    same("the cold sandbox is killed", 204, ask("DELETE", "/sandboxes/" + n.id).status)
    return took


def warm():
    """From a memory image the first cell does not wait for imports. The times are printed; docs/templates.md has those of a quiet machine."""
    n = Box()
    same("the first cell of a warm sandbox has its modules imported", "True",
         n.run("import sys\n{'pandas', 'matplotlib.pyplot'} <= set(sys.modules)")[0]["text"])
    same("the warm sandbox is killed", 204, ask("DELETE", "/sandboxes/" + n.id).status)
    took = [first_cell() for _ in range(5)]
    print("# first cells: %s ms, without a memory image %s ms" % (took, os.environ["WITHOUT_MS"]))


def parts():
    global b
    if "WITHOUT_MS" in os.environ:
        return warm()
    print("# first cell without a memory image: %d ms" % first_cell())
    b = Box()
    for part in (frames, figures, ipython, typescript, limits, notebooks):
        part()
    same("the sandbox is killed", 204, ask("DELETE", "/sandboxes/" + b.id).status)


harness.run(parts)
