"""Magics: lines that are no python. Only looked for in cells that python cannot parse.

Which lines those are, python's own parser says: the line where it fails is rewritten if it has the form of a magic, and
the cell is tried again. So a percent sign in a text or in arithmetic is never mistaken, and line numbers stay."""

import os
import re
import sys
import time

kernel = None

own = {"line": {}, "cell": {}}

ASSIGNED = re.compile(r"^(\s*)([\w.,\[\]'\" ]+?)\s*=\s*([!%])(.*)$")
ESCAPED = re.compile(r"^(\s*)(!!?|%)(.*)$")
HELP = re.compile(r"^(\s*)(\?{1,2})?\s*([\w.]+)\s*(\?{1,2})?\s*$")


def setup(k):
    global kernel
    kernel = k


class UsageError(Exception):
    pass


# ---- rewriting ----


def rewrite(code, name):
    stripped = code.lstrip("\n")
    if stripped.startswith("%%"):
        head, _, body = stripped[2:].partition("\n")
        magic, _, line = head.strip().partition(" ")
        return "get_ipython().run_cell_magic(%r, %r, %r)" % (magic, line, body)
    lines = code.split("\n")
    for _ in range(len(lines) + 1):
        try:
            compile("\n".join(lines), name, "exec", 0x400 | 0x2000, True)
            break
        except SyntaxError as error:
            at = find_magic(lines, (error.lineno or 1) - 1)
            if at is None:
                raise
            lines[at] = rewrite_line(lines[at])
    return "\n".join(lines)


def find_magic(lines, at):
    """The line of the error, or the first magic before it: an error may only show further down."""
    for i in [min(at, len(lines) - 1)] + list(range(min(at, len(lines)))):
        if rewrite_line(lines[i]) is not None:
            return i
    return None


def rewrite_line(line):
    found = ASSIGNED.match(line)
    if found:
        indent, target, mark, rest = found.groups()
        return "%s%s = %s" % (indent, target, call_of(mark, rest, True))
    found = ESCAPED.match(line)
    if found:
        indent, mark, rest = found.groups()
        return indent + call_of(mark, rest, mark == "!!")
    found = HELP.match(line)
    if found and (found[2] or found[4]):
        marks = found[2] or found[4]
        return "%sget_ipython().run_line_magic('pinfo%s', %r)" % (found[1], "2" if marks == "??" else "", found[3])
    return None


def call_of(mark, rest, wants_output):
    if mark.startswith("!"):
        return "get_ipython().%s(%r)" % ("getoutput" if wants_output else "system", rest.strip())
    magic, _, line = rest.strip().partition(" ")
    return "get_ipython().run_line_magic(%r, %r)" % (magic, line.strip())


def names_around():
    """The variables where the magic stands: the frame that called through the shell."""
    frame = sys._getframe(1)
    ours = os.path.dirname(__file__)
    while frame and os.path.dirname(frame.f_code.co_filename) == ours:
        frame = frame.f_back
    if frame is None:
        return kernel.names
    return {**frame.f_globals, **frame.f_locals}


def expand(text):
    """{expression} and $name; what cannot be evaluated stays as it is."""
    names = names_around()

    def braces(found):
        try:
            return str(eval(found[1], names))
        except Exception:
            return found[0]

    def dollar(found):
        return str(names[found[1]]) if found[1] in names and not found[1].startswith("__") else found[0]

    text = re.sub(r"(?<!\$)\{([^{}]+)\}", braces, text)
    return re.sub(r"\$([A-Za-z_]\w*)", dollar, text)


# ---- commands ----


def run_program(args, **options):
    import subprocess

    kernel.flush()
    process = subprocess.Popen(args, **options)
    try:
        return process, process.communicate()[0]
    except BaseException:
        process.kill()
        process.wait()
        raise


def shell_of(command):
    return ["/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c", command]


def system(command):
    process, _ = run_program(shell_of(expand(command)))
    kernel.names["_exit_code"] = process.returncode


class Lines(list):
    """The output of a command, line by line."""

    @property
    def s(self):
        return " ".join(self)

    @property
    def n(self):
        return "\n".join(self)


def getoutput(command):
    import subprocess

    process, out = run_program(shell_of(expand(command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    kernel.names["_exit_code"] = process.returncode
    return Lines(out.decode("utf-8", "replace").splitlines())


# ---- line magics ----


def pip(line):
    run_program([sys.executable, "-m", "pip", *__import__("shlex").split(expand(line))])
    import importlib

    importlib.invalidate_caches()
    user = os.path.expanduser("~/.local/lib/python%d.%d/site-packages" % sys.version_info[:2])
    if os.path.isdir(user) and user not in sys.path:
        sys.path.append(user)


def cd(line):
    where = os.path.expanduser(expand(line.strip().strip("'\""))) or os.path.expanduser("~")
    os.chdir(where)
    print(os.getcwd())


def pwd(line):
    return os.getcwd()


def env(line):
    line = line.strip()
    if not line:
        return dict(os.environ)
    name, mark, value = line.partition("=")
    if not mark:
        name, mark, value = line.partition(" ")
    if not mark:
        return os.environ.get(name, "")
    os.environ[name.strip()] = expand(value.strip())
    print("env: %s=%s" % (name.strip(), os.environ[name.strip()]))
    return None


def who_names():
    hidden = {"In", "Out", "exit", "quit", "display", "get_ipython"}
    return sorted(n for n, v in kernel.names.items()
                  if not n.startswith("_") and n not in hidden and not isinstance(v, type(sys)))


def who(line):
    print("\t".join(who_names()) or "Interactive namespace is empty.")


def whos(line):
    print("Variable   Type       Data/Info\n" + "-" * 30)
    for name in who_names():
        value = kernel.names[name]
        text = repr(value)
        print("%-10s %-10s %s" % (name, type(value).__name__, text if len(text) < 60 else text[:57] + "..."))


def run(line):
    import shlex

    words = shlex.split(expand(line))
    if not words:
        raise UsageError("%run needs the name of a file")
    path = words[0] if os.path.exists(words[0]) or words[0].endswith(".py") else words[0] + ".py"
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec")
    saved, sys.argv = sys.argv, words
    names = {**kernel.names, "__file__": path}
    try:
        exec(code, names)
    finally:
        sys.argv = saved
        for name, value in names.items():
            if name != "__file__":
                kernel.names[name] = value


def spell(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return "%.3g %s" % (seconds * scale, unit)
    return ""


def timed(code):
    if not code.strip():
        raise UsageError("%time needs code")
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        kernel.execute(code, "<cell %d>" % kernel.count)
    finally:
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        print("CPU times: total: %s\nWall time: %s" % (spell(cpu), spell(wall)))


def timeit(line, cell=None):
    import timeit as module

    options = re.match(r"(?:-n\s*(\d+)\s*)?(?:-r\s*(\d+)\s*)?(.*)$", line, re.S)
    setup_code, code = (options[3] or "pass", cell) if cell is not None else ("pass", options[3])
    timer = module.Timer(code, setup_code, globals=kernel.names)
    loops = int(options[1]) if options[1] else timer.autorange()[0]
    runs = int(options[2] or 7)
    times = [t / loops for t in timer.repeat(runs, loops)]
    mean = sum(times) / runs
    deviation = (sum((t - mean) ** 2 for t in times) / runs) ** 0.5
    print("%s ± %s per loop (mean ± std. dev. of %d run%s, %s loop%s each)" % (
        spell(mean), spell(deviation), runs, "s" * (runs > 1), format(loops, ","), "s" * (loops > 1)))


def pinfo(line, source=False):
    import inspect

    try:
        value = eval(line, kernel.names)
    except NameError:
        print("Object `%s` not found." % line)
        return
    text = []
    try:
        text.append("Signature: %s%s" % (line, inspect.signature(value)))
    except (TypeError, ValueError):
        pass
    text.append("Type:      %s" % type(value).__name__)
    text.append("Docstring: %s" % (inspect.getdoc(value) or "<no docstring>"))
    if source:
        try:
            text.append("Source:\n" + inspect.getsource(value))
        except (OSError, TypeError):
            pass
    print("\n".join(text))


def matplotlib(line):
    return None  # figures are shown at the end of a cell anyway


def lsmagic(line):
    print("Line magics: %s" % " ".join("%" + n for n in sorted(LINE)))
    print("Cell magics: %s" % " ".join("%%" + n for n in sorted(CELL)))


def reset(line):
    for name in who_names():
        del kernel.names[name]


LINE = {
    "pip": pip, "cd": cd, "pwd": pwd, "env": env, "set_env": env, "who": who, "who_ls": lambda line: who_names(),
    "whos": whos, "run": run, "time": timed, "timeit": timeit, "pinfo": pinfo, "pinfo2": lambda line: pinfo(line, True),
    "matplotlib": matplotlib, "lsmagic": lsmagic, "reset": reset, "system": system, "sx": getoutput,
    "load_ext": lambda line: None, "autoreload": lambda line: None, "config": lambda line: None,
    "conda": lambda line: system("conda " + line), "ls": lambda line: system("ls " + line),
    "cat": lambda line: system("cat " + line), "mkdir": lambda line: system("mkdir " + line),
    "rm": lambda line: system("rm " + line),
}


def line_magic(name, line):
    function = own["line"].get(name) or LINE.get(name)
    if function is None:
        raise UsageError("Line magic function `%%%s` not found." % name)
    return function(line)


# ---- cell magics ----


def through(*program):
    def magic(line, cell):
        import subprocess

        kernel.flush()
        process = subprocess.Popen(list(program), stdin=subprocess.PIPE)
        try:
            process.communicate(cell.encode("utf-8"))
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, cell)

    return magic


def writefile(line, cell):
    append, name = line.strip().startswith("-a "), line.strip()
    if append:
        name = name[3:].strip()
    name = os.path.expanduser(expand(name.strip("'\"")))
    if not name:
        raise UsageError("%%writefile needs the name of a file")
    print(("Appending to %s" if append else "Overwriting %s" if os.path.exists(name) else "Writing %s") % name)
    with open(name, "a" if append else "w", encoding="utf-8") as file:
        file.write(cell)


class Captured:
    def __init__(self):
        self.stdout = self.stderr = ""
        self.outputs = []

    def show(self):
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for bundle in self.outputs:
            kernel.result(bundle)

    __call__ = show

    def __str__(self):
        return self.stdout


def capture(line, cell):
    """What python itself writes; programs that it starts write past it."""
    import contextlib
    import io

    out, err, captured = io.StringIO(), io.StringIO(), Captured()
    kernel.captures.append(captured.outputs)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            kernel.execute(cell, "<cell %d>" % kernel.count)
    finally:
        kernel.captures.pop()
        captured.stdout, captured.stderr = out.getvalue(), err.getvalue()
        if line.strip():
            kernel.names[line.strip().split()[-1]] = captured


def shown_as(mime):
    return lambda line, cell: kernel.result({mime: cell, "text/plain": "<%s>" % mime})


CELL = {
    "bash": through("bash"), "sh": through("sh"), "script": lambda line, cell: through(*line.split())(line, cell),
    "python3": through(sys.executable, "-"), "python": through(sys.executable, "-"), "node": through("node", "-"),
    "javascript": shown_as("application/javascript"), "js": shown_as("application/javascript"),
    "html": shown_as("text/html"), "HTML": shown_as("text/html"), "markdown": shown_as("text/markdown"),
    "latex": shown_as("text/latex"), "svg": shown_as("image/svg+xml"),
    "writefile": writefile, "file": writefile, "capture": capture, "timeit": timeit,
    "time": lambda line, cell: timed(line + "\n" + cell if line.strip() else cell),
}


def cell_magic(name, line, cell):
    function = own["cell"].get(name) or CELL.get(name)
    if function is None:
        raise UsageError("Cell magic `%%%%%s` not found." % name)
    return function(line, cell)


def register(function, kind, name):
    own["cell" if kind == "cell" else "line"][name] = function
