"""A stand-in for IPython where it is not installed: get_ipython(), and IPython.display, as far as cells expect them."""

import base64
import importlib.machinery
import os
import types

kernel = None
shell = None


def setup(k):
    global kernel, shell
    kernel = k
    shell = Shell()


class Events:
    """Matplotlib registers here for drawing after each cell; figures are shown by python_charts.py anyway."""

    def register(self, event, function):
        pass

    unregister = register


class Shell:
    """What get_ipython() gives: the part that cells use."""

    colors = "NoColor"
    events = Events()

    @property
    def user_ns(self):
        return kernel.names

    @property
    def execution_count(self):
        return kernel.count

    def run_line_magic(self, name, line, _stack_depth=1):
        return kernel.part("magics").line_magic(name, line)

    def run_cell_magic(self, name, line, cell):
        return kernel.part("magics").cell_magic(name, line, cell)

    def magic(self, text):
        return self.run_line_magic(*(text.split(None, 1) + [""])[:2])

    def system(self, command):
        return kernel.part("magics").system(command)

    def getoutput(self, command):
        return kernel.part("magics").getoutput(command)

    def run_cell(self, code, *_, **__):
        kernel.execute(code, "<cell %d>" % kernel.count)

    def ev(self, code):
        return eval(code, kernel.names)

    def ex(self, code):
        exec(code, kernel.names)

    def push(self, names, *_):
        kernel.names.update(names)

    def register_magic_function(self, function, kind="line", name=None):
        kernel.part("magics").register(function, kind, name or function.__name__)

    def enable_matplotlib(self, *_):
        return None


def display(*values, **options):
    kernel.display(*values, raw=options.get("raw", False))


def publish(data, metadata=None, source=None, **_):
    kernel.result({str(k): v if not isinstance(v, bytes) else base64.b64encode(v).decode() for k, v in data.items()})


def nothing(*_, **__):
    return None


# ---- the stand-in ----


class Shown:
    """Something with one look."""

    mime = "text/plain"

    def __init__(self, data=None, url=None, filename=None, metadata=None, **options):
        if isinstance(data, (str, os.PathLike)) and filename is None and self.from_file(data):
            filename = data
        if filename is not None:
            with open(filename, "rb") as file:
                data = file.read()
            if self.mime.startswith("text/") or "xml" in self.mime or "script" in self.mime:
                data = data.decode("utf-8")
        self.data, self.url = data, url

    def from_file(self, data):
        return False

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.mime: self.data, "text/plain": repr(self)}

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__


class Image(Shown):
    mime = "image/png"

    def from_file(self, data):
        return os.path.exists(data)

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = self.data or b""
        if self.url and not data:
            return {"text/html": '<img src="%s"/>' % self.url, "text/plain": repr(self)}
        data = data.encode() if isinstance(data, str) else data
        mime = "image/jpeg" if data[:2] == b"\xff\xd8" else "image/png"
        return {mime: base64.b64encode(data).decode("ascii"), "text/plain": repr(self)}


KINDS = {
    "HTML": "text/html",
    "Markdown": "text/markdown",
    "Latex": "text/latex",
    "Math": "text/latex",
    "SVG": "image/svg+xml",
    "JSON": "application/json",
    "Javascript": "application/javascript",
    "Pretty": "text/plain",
}


def fill_package(module):
    module.get_ipython = lambda: shell
    module.__version__ = "0"


def fill_pylab(module):
    module.backend2gui = {}  # all that matplotlib asks for


def fill_display(module):
    for name, mime in KINDS.items():
        setattr(module, name, type(name, (Shown,), {"mime": mime}))
        if name != "Pretty":
            setattr(module, "display_" + name.lower(), lambda *values, **_: display(*values))
    module.Image, module.DisplayObject = Image, Shown
    module.display, module.publish_display_data, module.clear_output = display, publish, nothing


class Loader:
    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        FILL[module.__name__](module)


FILL = {
    "IPython": fill_package,
    "IPython.display": fill_display,
    "IPython.core": nothing,
    "IPython.core.pylabtools": fill_pylab,
}


def stand_in(name):
    return importlib.machinery.ModuleSpec(name, Loader(), is_package=name in ("IPython", "IPython.core"))
