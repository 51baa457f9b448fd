"""Cells in the real IPython, where the sandbox has it.

IPython's InteractiveShell runs the code: magics, indented cells, `await`, tracebacks, `In` and `Out`, events and
extensions are its own. What this file adds is where things go: results, displays and errors become events of the kernel,
commands write straight to the kernel's output, and nothing is written into the user's home directory.

Where IPython is missing, python.py runs the cells itself."""

import builtins
import traceback
import warnings

from IPython.core import interactiveshell
from IPython.core.autocall import ExitAutocall
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.display_functions import display
from IPython.core.formatters import BaseFormatter, JSONFormatter
from IPython.core.profiledir import ProfileDir
from traitlets import Any, ObjectName, Type, Unicode
from traitlets.config import Config
from traitlets.config.configurable import Configurable

kernel = None
shell = None


def setup(k):
    global kernel, shell
    kernel = k
    # "To exit: use 'exit'" is advice for a terminal.
    warnings.filterwarnings("ignore", message="To exit: use")
    interactiveshell.PickleShareDB = lambda path: {}  # what %bookmark and %alias keep, for as long as the kernel lives
    shell = Notebook.instance(user_module=k.module, user_ns=k.names, config=settings())
    shell.loop_runner = k.wait
    shell.configurables.append(InlineBackend(parent=shell))
    formatters(shell.display_formatter.formatters)
    shell.register_magic_function(lambda line: k.part("magics").pip(line), "line", "pip")
    for name, value in (("display", display), ("get_ipython", shell.get_ipython)):
        k.names.pop(name, None)  # no variable of the user's
        setattr(builtins, name, value)


def settings():
    config = Config()
    config.HistoryManager.enabled = False  # no file, and no thread that a fork would lose
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.autoindent = False
    config.PlainTextFormatter.max_seq_length = 0
    config.Completer.use_jedi = False
    return config


def run(code, store):
    """Runs one cell. Errors have become events when it returns."""
    shell.execution_count = max(kernel.count, 1)
    shell.run_cell(code, store_history=store)


# ---- where things go ----


def encoded(bundle):
    rich = kernel.part("rich")
    return {str(mime): rich.encoded(value) for mime, value in bundle.items()}


class Results(DisplayHook):
    """The value of a last expression: the main result."""

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        kernel.result(encoded(format_dict), True)

    def finish_displayhook(self):
        self._is_active = False


class Publisher(DisplayPublisher):
    """display() and everything that stands on it."""

    def publish(self, data, metadata=None, source=None, **_):
        kernel.result(encoded(data))

    def clear_output(self, wait=False):
        pass  # what was sent is sent


class EndCell(ExitAutocall):
    """exit and quit, with and without parentheses: the cell ends, the kernel stays."""

    def __call__(self, *_, **__):
        kernel.stop()


class NoProfile(ProfileDir):
    """A profile without a directory: the user's home stays as it is."""

    def _location_changed(self, change=None):
        pass


class Notebook(interactiveshell.InteractiveShell):
    displayhook_class = Type(Results)
    display_pub_class = Type(Publisher)
    exiter = Any()

    def _exiter_default(self):
        return EndCell(self)

    def init_ipython_dir(self, ipython_dir):
        pass

    def init_profile_dir(self, profile_dir):
        self.profile_dir = NoProfile(location="/nonexistent")

    def ask_exit(self):
        kernel.stop()

    def system(self, cmd):
        """`!command`: its output needs no detour through this process."""
        magics = kernel.part("magics")
        process, _ = magics.run_program(magics.shell_of(self.var_expand(cmd, depth=1)))
        self.user_ns["_exit_code"] = process.returncode

    def enable_matplotlib(self, gui=None):
        """Figures are shown at the end of a cell whatever the backend is called (python_charts.py)."""
        return "inline", "agg"

    def enable_pylab(self, gui=None, import_all=True, welcome_message=False):
        from IPython.core import pylabtools

        names = {}
        pylabtools.import_pylab(names, import_all)
        self.user_ns.update(names)
        return "inline", "agg", set()

    def showtraceback(self, exc_tuple=None, *args, **options):
        """Of a group of exceptions newer versions of IPython only print the traceback."""
        kind, value, trace = self._get_exc_info(exc_tuple)
        if isinstance(value, getattr(builtins, "BaseExceptionGroup", ())):
            self._showtraceback(kind, value, ["".join(traceback.format_exception(kind, value, trace))])
        else:
            super().showtraceback(exc_tuple, *args, **options)

    def _showtraceback(self, etype, evalue, stb):
        if issubclass(etype, kernel.stop_class):
            return
        text = "\n".join(stb) if isinstance(stb, list) else str(stb)
        name = next(c.__name__ for c in etype.__mro__ if not c.__name__.startswith("_"))  # _IncompleteInputError
        kernel.error(name, str(kernel.part("errors").text_of(evalue)), text)

    def show_usage_error(self, exc):
        kernel.error("UsageError", str(exc), "UsageError: %s" % exc)


class InlineBackend(Configurable):
    """What notebooks set with `%config InlineBackend.figure_format = 'retina'`."""

    figure_format = Unicode("png").tag(config=True)
    figure_formats = Any().tag(config=True)
    print_figure_kwargs = Any().tag(config=True)
    rc = Any().tag(config=True)
    close_figures = Any().tag(config=True)

    def retina(self):
        wanted = self.figure_formats or [self.figure_format]
        return "retina" in wanted or "png2x" in wanted


# ---- what objects look like ----


class Data(BaseFormatter):
    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = (dict, str)

    def __call__(self, obj):
        found = {}
        if kernel.part("rich").instance_of(obj, "pandas", "DataFrame"):
            kernel.part("rich").add_frame(obj, found)
        return found.get("e2b/data") or super().__call__(obj)


class Chart(BaseFormatter):
    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = (dict, str)

    def __call__(self, obj):
        if kernel.part("rich").instance_of(obj, "matplotlib.figure", "Figure"):
            return kernel.part("charts").chart(obj)
        return super().__call__(obj)


class Json(JSONFormatter):
    def __call__(self, obj):
        found = kernel.part("rich").as_json(obj)
        return super().__call__(obj) if found is None else found


def formatters(table):
    table["e2b/data"], table["e2b/chart"], table["application/json"] = Data(), Chart(), Json()
    table["image/png"].for_type_by_name("matplotlib.figure", "Figure", lambda figure: kernel.part("charts").png(figure))


def scale():
    """Pixels for each point of a figure: twice as many with 'retina'."""
    return 2 if any(isinstance(c, InlineBackend) and c.retina() for c in shell.configurables) else 1
