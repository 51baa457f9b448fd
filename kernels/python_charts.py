"""Figures of matplotlib: as pictures, and as data that a client can draw anew (e2b/chart).

Figures are shown at the end of a cell or by plt.show(), and closed. What kind of chart an axes holds is read from its
artists; box plots keep no numbers in theirs, so those are noted when they are drawn."""

import base64
import io
import re
import sys

kernel = None

UNIT = re.compile(r"\(([^()]+)\)\s*$|\[([^\[\]]+)\]\s*$|\s+in\s+(\S+)\s*$")


def setup(k):
    global kernel
    kernel = k


# ---- showing ----


def on_pyplot(pyplot):
    pyplot.show = lambda *_, **__: show_all()
    axes = sys.modules["matplotlib.axes"].Axes
    plain = axes.bxp

    def bxp(self, bxpstats, *args, **options):
        self._cove_boxes = getattr(self, "_cove_boxes", []) + list(bxpstats)
        return plain(self, bxpstats, *args, **options)

    axes.bxp = bxp


def show_all():
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not hasattr(pyplot, "get_fignums"):
        return  # its import failed half-way
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        if figure.get_axes() or figure.texts or figure.images:
            kernel.display(figure)
        pyplot.close(figure)


def add_figure(figure, found):
    if "image/png" not in found:
        found["image/png"] = base64.b64encode(png(figure)).decode("ascii")
    data = chart(figure)
    if data is not None:
        found["e2b/chart"] = data


def png(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    out = io.BytesIO()
    if figure.canvas is None or not hasattr(figure.canvas, "print_png"):
        FigureCanvasAgg(figure)
    notebook = kernel.notebook()
    figure.savefig(out, format="png", bbox_inches="tight", dpi=figure.dpi * (notebook.scale() if notebook else 1))
    return out.getvalue()


def chart(figure):
    """What the figure shows, as data; None where that cannot be told."""
    try:
        return kernel.part("rich").jsonable(chart_of(figure))
    except Exception:
        return None  # the picture is there


# ---- charts ----


def chart_of(figure):
    charts = [axes_chart(axes) for axes in figure.get_axes() if axes.get_visible()]
    if not charts:
        return None
    if len(charts) == 1:
        return charts[0]
    title = figure._suptitle.get_text() if getattr(figure, "_suptitle", None) else None
    return {"type": "superchart", "title": title, "elements": charts}


def axes_chart(axes):
    for kind, read in KINDS:
        chart = read(axes)
        if chart is not None:
            return {"type": kind, "title": axes.get_title() or None, **chart}
    return {"type": "unknown", "title": axes.get_title() or None, "elements": []}


def unit(label):
    found = UNIT.search(label or "")
    return next((g for g in found.groups() if g), None) if found else None


def labels(axes):
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    return {"x_label": x, "y_label": y, "x_unit": unit(x), "y_unit": unit(y)}


def number(value):
    value = value.item() if hasattr(value, "item") else value
    return value


def scale_of(axis):
    converter = type(getattr(axis, "converter", None) or getattr(axis, "get_converter", lambda: None)()).__name__
    if "Date" in converter or "Timestamp" in converter or "Period" in converter:
        return "datetime"
    return "categorical" if "StrCategory" in converter else axis.get_scale()


def values(data, axis, scale):
    """Dates as texts, categories by their names, numbers as they are."""
    if scale == "datetime":
        from matplotlib.dates import num2date

        return [num2date(axis.convert_units(v)).isoformat() if not hasattr(v, "isoformat") else v.isoformat()
                for v in data]
    if scale == "categorical":
        names = [t.get_text() for t in axis.get_ticklabels()]
        return [v if isinstance(v, str) else names[int(v)] if 0 <= int(v) < len(names) else str(v) for v in data]
    return [number(v) for v in data]


def ticks(axis, scale):
    places = axis.get_ticklocs()
    texts = [t.get_text() for t in axis.get_ticklabels()]
    if scale == "datetime":
        return values(places, axis, scale), texts
    return [number(p) for p in places], texts


def point_chart(axes, series):
    axes.figure.canvas.draw_idle()
    chart = labels(axes)
    scales = {}
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        scales[name] = chart[name + "_scale"] = scale_of(axis)
        chart[name + "_ticks"], chart[name + "_tick_labels"] = ticks(axis, scales[name])
    chart["elements"] = [
        {"label": label, "points": [list(p) for p in zip(values(x, axes.xaxis, scales["x"]),
                                                        values(y, axes.yaxis, scales["y"]))]}
        for label, x, y in series]
    return chart


def name_of(artist, at):
    label = str(artist.get_label() or "")
    return label if label and not label.startswith("_") else "Line %d" % (at + 1)


def read_boxes(axes):
    boxes = getattr(axes, "_cove_boxes", None)
    if not boxes:
        return None
    names = [t.get_text() for t in axes.get_xticklabels()]
    if len(names) != len(boxes):
        names = [t.get_text() for t in axes.get_yticklabels()]
    out = []
    for i, box in enumerate(boxes):
        label = str(box.get("label") or (names[i] if len(names) == len(boxes) else i + 1))
        out.append({"label": label, "min": number(box["whislo"]), "first_quartile": number(box["q1"]),
                    "median": number(box["med"]), "third_quartile": number(box["q3"]), "max": number(box["whishi"]),
                    "outliers": [number(v) for v in box.get("fliers", [])]})
    return {**labels(axes), "elements": out}


def read_pie(axes):
    from matplotlib.patches import Wedge

    wedges = [p for p in axes.patches if isinstance(p, Wedge)]
    if not wedges:
        return None
    return {"elements": [{"label": w.get_label() if not w.get_label().startswith("_") else "",
                          "angle": round(float(abs(w.theta2 - w.theta1)), 4), "radius": number(w.r)} for w in wedges]}


def read_bars(axes):
    from matplotlib.container import BarContainer

    groups = [c for c in axes.containers if isinstance(c, BarContainer)]
    if not groups:
        return None
    out = []
    for i, group in enumerate(groups):
        lying = getattr(group, "orientation", "vertical") == "horizontal"
        axis = axes.yaxis if lying else axes.xaxis
        names = dict(zip((round(float(v), 6) for v in axis.get_ticklocs()), (t.get_text() for t in axis.get_ticklabels())))
        label = str(group.get_label() or "")
        for bar in group.patches:
            middle = bar.get_y() + bar.get_height() / 2 if lying else bar.get_x() + bar.get_width() / 2
            edge = bar.get_y() if lying else bar.get_x()
            name = names.get(round(middle, 6)) or names.get(round(edge, 6)) or "%g" % middle
            out.append({"label": name, "group": label if not label.startswith("_") else "Group %d" % (i + 1)
                        if len(groups) > 1 else label.lstrip("_") and "",
                        "value": number(bar.get_width() if lying else bar.get_height())})
    return {**labels(axes), "elements": out}


def read_scatter(axes):
    from matplotlib.collections import PathCollection

    clouds = [c for c in axes.collections if isinstance(c, PathCollection)]
    if not clouds:
        return None
    series = []
    for i, cloud in enumerate(clouds):
        points = cloud.get_offsets()
        series.append((name_of(cloud, i), [p[0] for p in points], [p[1] for p in points]))
    return point_chart(axes, series)


def read_lines(axes):
    lines = axes.get_lines()
    if not lines:
        return None
    return point_chart(axes, [(name_of(line, i), line.get_xdata(), line.get_ydata()) for i, line in enumerate(lines)])


# The first that finds something of its own; scatter plots may have lines, bars error marks.
KINDS = [
    ("box_and_whisker", read_boxes),
    ("pie", read_pie),
    ("bar", read_bars),
    ("scatter", read_scatter),
    ("line", read_lines),
]
