"""The python kernel: runs cells the way notebooks do.

Where the sandbox has IPython, IPython runs them (python_notebook.py). The rest of this file is for sandboxes without it: a cell
is compiled as it is; only when that fails are magics looked for (python_magics.py). The value of a last expression is the main
result. What objects look like is python_rich.py's, figures are python_charts.py's, the stand-in for IPython is
python_ipython.py; each is loaded when it is first needed.
"""

import _ast
import builtins
import os
import signal
import sys
import types
from json.encoder import encode_basestring_ascii as quoted

CO_COROUTINE = 0x80
AWAIT_FLAG = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
AST_FLAG = 0x400  # ast.PyCF_ONLY_AST
EVENT_MAX = 31 << 20

# Their repr is all there is to show, and never code of the user's.
PLAIN = {int, float, bool, str, bytes, complex}

# Modules that cells import whether IPython is there or not.
STAND_INS = {"IPython", "IPython.display", "IPython.core", "IPython.core.pylabtools"}

kernel = None


class Stop(BaseException):
    """exit() or quit(): the cell ends, the kernel stays."""


class Kernel:
    def __init__(self, cells, events, load):
        self.cells, self.events, self.load = cells, events, load
        self.pending = b""
        self.count = 0
        self.running = False
        self.pid = os.getpid()
        self.loop = None
        self.seen = resumed()
        self.adopted = False
        self.parts = {}
        self.captures = []  # of %%capture: results go there
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.history, self.results = [""], {}
        self.hooks = {}
        self.stop, self.stop_class = stop, Stop

    # ---- events ----

    def emit(self, line):
        data = memoryview(line.encode("ascii"))
        while len(data):
            data = data[os.write(self.events, data):]

    def flush(self):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass

    def result(self, bundle, main=False):
        """A MIME bundle. Values are texts, or anything that JSON can say."""
        if self.captures:
            self.captures[-1].append(bundle)
            return
        self.flush()
        line = '{"type":"result","is_main_result":%s,"data":%s}\n' % ("true" if main else "false", to_json(bundle))
        if len(line) > EVENT_MAX:
            sys.stderr.write("a result of %d MB is too big to be sent\n" % (len(line) >> 20))
            self.flush()
            return
        self.emit(line)

    def error(self, name, value, trace):
        self.flush()
        self.emit('{"type":"error","name":%s,"value":%s,"traceback":%s}\n'
                  % (quoted(name[:1000]), quoted(value[:1 << 20]), quoted(trace[:4 << 20])))

    # ---- parts that are loaded when needed ----

    def part(self, name):
        if name not in self.parts:
            self.parts[name] = self.load("python_" + name)
            self.parts[name].setup(self)
        return self.parts[name]

    def load_once(self, name):
        if name not in self.parts:
            self.parts[name] = self.load(name)
        return self.parts[name]

    def bundle(self, value):
        if type(value) in PLAIN:
            return {"text/plain": repr(value)}
        return self.part("rich").bundle(value)

    def display(self, *values, **options):
        if self.parts.get("notebook"):
            self.parts["notebook"].display(*values, **options)
            return
        for value in values:
            self.result(value if options.get("raw") and type(value) is dict else self.bundle(value))

    # ---- cells ----

    def read_cell(self):
        while b"\n" not in self.pending:
            data = os.read(self.cells, 1 << 16)
            if not data:
                return None
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        import json

        return json.loads(line)

    def serve(self):
        while True:
            cell = self.read_cell()
            if cell is None:
                return
            if "warm" in cell:
                self.warm(cell)
                continue
            self.settle(cell)
            if "fork" in cell:
                self.fork(cell)
                continue
            if cell.get("store", True):
                self.count += 1
            self.emit('{"type":"begin","id":%s,"execution_count":%d}\n' % (quoted(cell["id"]), self.count))
            saved = set_env(cell.get("env") or {})
            try:
                self.run(cell["code"], cell.get("store", True))
            except KeyboardInterrupt:
                pass  # between two lines of ours: the cell has ended
            finally:
                self.running = False
                restore_env(saved)
            if os.getpid() != self.pid:
                os._exit(0)  # the code forked and came back twice
            self.flush()
            self.emit('{"type":"end","id":%s}\n' % quoted(cell["id"]))

    def fork(self, cell):
        """A kernel like this one, for a context of its own. Both return from here."""
        self.flush()
        self.emit('{"type":"begin","id":%s,"execution_count":%d}\n' % (quoted(cell["id"]), self.count))
        forks, between = self.load_once("fork"), None
        try:
            between = forks.split_off(cell["fork"]["name"], cell["fork"]["pid"], (self.cells, self.events))
        except OSError as error:
            self.error("ForkError", error.strerror or str(error), "")
        if between != 0:
            self.emit('{"type":"end","id":%s}\n' % quoted(cell["id"]))
            if between:
                forks.reap(between)
            return
        self.pid = os.getpid()
        self.pending = b""
        # Its epoll is the old kernel's, too: what is unregistered here would be deaf there. So it is not closed but left.
        self.left, self.loop = self.loop, None
        self.reseed()

    def warm(self, cell):
        """Modules ahead of the first cell, for a template's memory image. No name of theirs is put anywhere."""
        import importlib

        self.emit('{"type":"begin","id":%s,"execution_count":0}\n' % quoted(cell["id"]))
        for name in cell["warm"]:
            try:
                importlib.import_module(name)
            except BaseException as error:
                self.error(type(error).__name__, "%s: %s" % (name, error), "")
        for name in ("errors", "rich"):
            self.part(name)
        self.notebook()
        self.flush()
        self.emit('{"type":"end","id":%s}\n' % quoted(cell["id"]))

    def settle(self, cell):
        """A kernel that came out of an image: the sandbox's environment, once, and other random numbers."""
        if not self.adopted and cell.get("adopt") is not None:
            self.adopted = True
            os.environ.update(cell["adopt"])
        now = resumed()
        if now != self.seen:
            self.seen = now
            if now and b"\nwhy=fork\n" in now:
                if "random" in sys.modules:
                    sys.modules["random"].seed()
                self.reseed()

    def reseed(self):
        """So that two do not draw the same. `random` does it by itself after each fork."""
        drawing = sys.modules.get("numpy.random")
        if drawing is not None:
            try:
                drawing.seed()
            except Exception:
                pass  # one of the user's own making

    def notebook(self):
        """IPython's shell; None where the sandbox has no IPython, or one that does not start."""
        if "notebook" not in self.parts:
            self.parts["notebook"] = None
            try:
                if has_ipython():
                    self.start_notebook()
            except Exception as error:
                sys.stderr.write("IPython does not start, so that cells run without it: %s\n" % error)
        return self.parts["notebook"]

    def start_notebook(self):
        part = self.load("python_notebook")
        part.setup(self)
        self.parts["notebook"] = part

    def run_alone(self, code):
        """Without IPython."""
        name = "<cell %d>" % self.count
        self.remember(name, code)
        self.history.append(code)
        self.execute(code, name)

    def run(self, code, store=True):
        try:
            self.running = True
            notebook = self.notebook()
            if notebook:
                notebook.run(code, store)
            else:
                self.run_alone(code)
            if "matplotlib.pyplot" in sys.modules:
                self.part("charts").show_all()
        except Stop:
            pass
        except BaseException:
            self.running = False
            self.report(*sys.exc_info())

    def report(self, kind, value, trace):
        self.names["__builtins__"] = builtins
        self.error(*self.part("errors").describe(kind, value, trace))

    def remember(self, name, code):
        """For tracebacks, inspect and doctest."""
        lines = code.splitlines(True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        import linecache

        linecache.cache[name] = (len(code), None, lines, name)

    def parse(self, code, name):
        try:
            return compile(code, name, "exec", AST_FLAG | AWAIT_FLAG, True), code
        except SyntaxError:
            if not any(mark in code for mark in "!%?"):
                raise
            code = self.part("magics").rewrite(code, name)
            return compile(code, name, "exec", AST_FLAG | AWAIT_FLAG, True), code

    def execute(self, code, name):
        """Runs it; shows the value of its last expression."""
        tree, plain = self.parse(without_margin(code), name)
        body = tree.body
        last = None
        if body and isinstance(body[-1], _ast.Expr) and not ends_quietly(plain):
            last = _ast.Expression(body.pop().value)
        if body:
            self.evaluate(compile(tree, name, "exec", AWAIT_FLAG, True))
        if last is not None:
            value = self.evaluate(compile(last, name, "eval", AWAIT_FLAG, True))
            if value is not None:
                self.keep(value)
                self.result(self.bundle(value), True)

    def evaluate(self, code):
        value = eval(code, self.names)
        if code.co_flags & CO_COROUTINE:
            return self.wait(value)
        return value

    def wait(self, coroutine):
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            try:
                self.loop.run_until_complete(task)
            except BaseException:
                pass
            raise

    def keep(self, value):
        """_, __, ___, _N and Out[N]."""
        names = self.names
        names["___"], names["__"], names["_"] = names.get("__"), names.get("_"), value
        names["_%d" % self.count] = self.results[self.count] = value

    # ---- modules that want something done when they are imported ----

    def after_import(self, name, hook):
        self.hooks[name] = hook
        if name in sys.modules:
            hook(sys.modules[name])

    def find_spec(self, name, path=None, target=None):
        """A meta path finder: only for the names in self.hooks, which the other finders find, and for the stand-in of IPython."""
        if name in STAND_INS and not has_ipython():
            return self.part("ipython").stand_in(name)
        hook = self.hooks.get(name)
        if hook is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                hook_loader(spec.loader, hook)
                return spec
        return None


def hook_loader(loader, hook):
    plain = loader.exec_module

    def exec_module(module):
        plain(module)
        hook(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass  # built in or frozen: none of ours is


def without_margin(code):
    """A cell whose every line is indented, as people copy them out of functions and texts."""
    if code.lstrip("\n")[:1] not in (" ", "\t"):
        return code
    import textwrap

    return textwrap.dedent(code)


def has_ipython():
    if os.environ.get("COVE_PLAIN_CELLS"):
        return False
    import importlib.machinery

    return importlib.machinery.PathFinder.find_spec("IPython") is not None


def to_json(value):
    import json

    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return json.dumps(kernel.part("rich").jsonable(value), allow_nan=False)


def ends_quietly(code):
    """Whether a semicolon ends the last line of code, as notebooks have it."""
    tail = code.rstrip()
    if tail.endswith(";"):
        return True
    if ";" not in tail.rsplit("\n", 1)[-1]:
        return False
    import io
    import tokenize

    last = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER, tokenize.STRING):
                last = token.string
    except (tokenize.TokenError, SyntaxError):
        pass
    return last == ";"


def resumed():
    """What the agent says of the last time that this sandbox came out of an image; None: it never did."""
    try:
        fd = os.open("/run/cove/resumed", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.read(fd, 256)
    except OSError:
        return None
    finally:
        os.close(fd)


def set_env(env):
    saved = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    return saved


def restore_env(saved):
    for name, value in saved.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def on_interrupt(number, frame):
    if kernel.running and os.getpid() == kernel.pid:
        raise KeyboardInterrupt


def stop(code=None):
    raise Stop


def no_input(prompt=""):
    raise EOFError("this sandbox has no keyboard: input() cannot be answered. Give the value in the code.")


def open_streams():
    for name, fd in (("stdout", 1), ("stderr", 2)):
        stream = open(fd, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1,
                      newline="\n")
        stream.reconfigure(write_through=True)
        setattr(sys, name, stream)
        setattr(sys, "__%s__" % name, stream)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)


def fill_names(k):
    k.names.update(__name__="__main__", __builtins__=builtins, In=k.history, Out=k.results, exit=stop, quit=stop,
                   display=k.display, get_ipython=lambda: k.part("ipython").shell)
    builtins.display = k.display
    builtins.get_ipython = k.names["get_ipython"]
    builtins.input = no_input


def watch_imports(k):
    """Costs nothing until one of them is imported."""
    sys.meta_path.insert(0, k)
    k.after_import("matplotlib.pyplot", lambda m: k.part("charts").on_pyplot(m))
    k.after_import("PIL.Image", lambda m: k.part("rich").on_pictures(m))


def main(cells, events, load):
    global kernel
    k = kernel = Kernel(cells, events, load)
    open_streams()
    sys.modules["__main__"] = k.module
    sys.argv = [""]
    sys.path[0] = ""
    os.environ.setdefault("MPLBACKEND", "agg")
    signal.signal(signal.SIGINT, on_interrupt)
    fill_names(k)
    watch_imports(k)
    k.serve()
