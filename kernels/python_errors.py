"""Tracebacks as notebooks show them: the frames of the user's code, with the lines around the one that failed."""

import linecache
import os
import traceback

AROUND = 4
FRAMES_MAX = 40

kernel = None


def setup(k):
    global kernel
    kernel = k


def text_of(value):
    try:
        return str(value)
    except Exception:
        return "<the exception cannot be shown>"


def describe(kind, value, trace):
    """Name, value and text of an exception."""
    name, text = kind.__name__, text_of(value)
    if isinstance(value, SyntaxError) and from_cell(value.filename):
        return name, syntax_text(value), syntax_trace(name, value)
    try:
        shown = head(name) + "\n" + chain(value, trace)
    except Exception:
        shown = "".join(traceback.format_exception_only(kind, value))
    return name, text, shown


def head(name):
    return "-" * 75 + "\n" + name + "Traceback (most recent call last)".rjust(75 - len(name))


def from_cell(filename):
    return bool(filename) and filename.startswith("<cell ")


def is_ours(filename):
    return os.path.dirname(filename) == os.path.dirname(__file__)


def place(filename, line, function):
    if from_cell(filename):
        where = "Cell In[%s], line %d" % (filename[6:-1], line)
        return where if function == "<module>" else "%s, in %s()" % (where, function)
    return "File %s:%d, in %s()" % (filename, line, function)


def lines_around(filename, line):
    out = []
    for number in range(max(1, line - AROUND), line + AROUND + 1):
        text = linecache.getline(filename, number)
        if not text:
            continue
        mark = "-" * max(1, 5 - len(str(number))) + "> " if number == line else ""
        out.append("%s%s %s" % (mark.rjust(7 - len(str(number))) if mark else " " * (7 - len(str(number))),
                                number, text.rstrip("\n")))
    return "\n".join(out)


def frames_of(trace):
    frames = [f for f in traceback.extract_tb(trace) if not is_ours(f.filename)]
    if len(frames) > FRAMES_MAX:
        gap = len(frames) - FRAMES_MAX
        return frames[:FRAMES_MAX // 2], gap, frames[-FRAMES_MAX // 2:]
    return frames, 0, []


def show_frame(frame):
    where = place(frame.filename, frame.lineno, frame.name)
    around = lines_around(frame.filename, frame.lineno)
    return where + ("\n" + around if around else "")


def one(value, trace):
    first, gap, rest = frames_of(trace)
    parts = [show_frame(f) for f in first]
    if gap:
        parts.append("    [... %d frames left out ...]" % gap)
    parts += [show_frame(f) for f in rest]
    parts.append("".join(traceback.format_exception_only(type(value), value)).rstrip("\n"))
    return "\n\n".join(parts)


def chain(value, trace, seen=None):
    """Causes first, as python itself has them."""
    seen = seen or set()
    seen.add(id(value))
    cause, context = value.__cause__, value.__context__
    before = ""
    if cause is not None and id(cause) not in seen:
        before = chain(cause, cause.__traceback__, seen) + \
            "\n\nThe above exception was the direct cause of the following exception:\n\n"
    elif context is not None and not value.__suppress_context__ and id(context) not in seen:
        before = chain(context, context.__traceback__, seen) + \
            "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    return before + one(value, trace)


def syntax_text(value):
    cell = value.filename[6:-1]
    return "%s (%s, line %s)" % (value.msg, "cell " + cell, value.lineno)


def syntax_trace(name, value):
    line = (value.text or linecache.getline(value.filename, value.lineno or 0)).rstrip("\n")
    caret = " " * max(0, (value.offset or 1) - 1) + "^"
    return "  Cell In[%s], line %s\n    %s\n    %s\n%s: %s\n" % (
        value.filename[6:-1], value.lineno, line, caret, name, value.msg)
