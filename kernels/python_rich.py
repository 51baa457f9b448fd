"""What an object looks like: its MIME bundle, from the methods that notebooks know (_repr_html_ and its siblings)."""

import base64
import math
import os
import reprlib
import sys

LINE = 79
TEXT_MAX = 4 << 20
DATA_MAX = 8 << 20
VALUES_MAX = 200000  # of a list or a dict that is shown as JSON

kernel = None

METHODS = [
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_pdf_", "application/pdf"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
    ("_repr_e2b_data_", "e2b/data"),
    ("_repr_e2b_chart_", "e2b/chart"),
]


def setup(k):
    global kernel
    kernel = k


def bundle(value):
    """Never raises: an object that cannot be shown says why."""
    found = mimebundle(value)
    if "text/plain" not in found:
        found["text/plain"] = plain(value)
    if not isinstance(value, type):
        for name, mime in METHODS:
            if mime in found:
                continue
            shown = call(value, name)
            if shown is not None:
                found[mime] = encoded(shown)
    add_known(value, found)
    return found


def call(value, name):
    """The method's answer without its metadata; None where there is none, or where it fails."""
    try:
        method = getattr(type(value), name, None) and getattr(value, name)
        if not callable(method):
            return None
        shown = method()
    except Exception:
        return None
    return shown[0] if isinstance(shown, tuple) and len(shown) == 2 else shown


def encoded(shown):
    return base64.b64encode(shown).decode("ascii") if isinstance(shown, (bytes, bytearray)) else shown


def mimebundle(value):
    if isinstance(value, type):
        return {}
    try:
        method = getattr(type(value), "_repr_mimebundle_", None) and value._repr_mimebundle_
        shown = method(include=None, exclude=None) if callable(method) else None
    except Exception:
        return {}
    if isinstance(shown, tuple):
        shown = shown[0]
    return {str(mime): encoded(v) for mime, v in shown.items()} if isinstance(shown, dict) else {}


def plain(value):
    try:
        text = call(value, "_repr_text_") or repr(value)
        if len(text) > LINE and type(value) in (list, tuple, dict, set, frozenset):
            import pprint

            text = pprint.pformat(value, width=LINE, sort_dicts=False)
    except RecursionError:
        text = "<%s that holds itself>" % type(value).__name__
    except Exception as error:
        text = "<%s; its repr failed: %s>" % (type(value).__name__, reprlib.repr(error))
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "…"


def instance_of(value, module, name):
    """Without importing anything: whoever made the object has."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def add_known(value, found):
    """Kinds that have more to show than their own methods say."""
    if instance_of(value, "pandas", "DataFrame"):
        add_frame(value, found)
    elif instance_of(value, "matplotlib.figure", "Figure"):
        kernel.part("charts").add_figure(value, found)
    elif isinstance(value, (list, dict)) and "application/json" not in found:
        shown = as_json(value)
        if shown is not None:
            found["application/json"] = shown
    elif instance_of(value, "PIL.Image", "Image") and "image/png" not in found:
        add_picture(value, found)


def add_frame(frame, found):
    if "e2b/data" in found:
        return
    try:
        data = {str(k): jsonable(v) for k, v in frame.to_dict(orient="list").items()}
    except Exception:
        return
    import json

    if len(json.dumps(data)) <= DATA_MAX:
        found["e2b/data"] = data


def on_pictures(module):
    """A picture that is saved under a name is shown, too; show() shows it here."""
    plain = module.Image.save

    def save(self, fp, format=None, **options):
        plain(self, fp, format, **options)
        if format is None and isinstance(fp, (str, os.PathLike)):
            kernel.display(self)

    module.Image.save = save
    module.Image.show = lambda self, *_, **__: kernel.display(self)


def add_picture(picture, found):
    import io

    out = io.BytesIO()
    try:
        picture.save(out, "PNG")
    except Exception:
        return
    found["image/png"] = encoded(out.getvalue())


def as_json(value):
    """A list or a dict as plain JSON values; None for anything else, and where something in it is not of that kind."""
    if not isinstance(value, (list, dict)):
        return None
    try:
        return strictly(value, [0])
    except (TypeError, RecursionError):
        return None


def strictly(value, count, depth=0):
    count[0] += 1
    if depth > 100 or count[0] > VALUES_MAX:
        raise TypeError("too much")
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key(k): strictly(v, count, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [strictly(v, count, depth + 1) for v in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return strictly(value.tolist(), count, depth + 1)
    raise TypeError("no JSON")


def key(value):
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return str(value)
    raise TypeError("no key")


def jsonable(value, depth=0):
    """What JSON can say of it: numbers of other libraries, times, and what is not finite (null)."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth > 40:
        return str(value)
    if isinstance(value, dict):
        return {str(k): jsonable(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(v, depth + 1) for v in value]
    if isinstance(value, (bytes, bytearray)):
        return encoded(value)
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return jsonable(value.tolist(), depth + 1)
    return str(value)
