"""Small pictures as SVG, without scripts: for light and dark pages, and with their numbers told in words."""

from satchel.evaluation.charts.axes import Axis
from satchel.evaluation.charts.bars import Bar, Mark, bar_chart, histogram
from satchel.evaluation.charts.drawing import Size
from satchel.evaluation.charts.lines import Series, line_chart
from satchel.evaluation.charts.reliability import reliability_chart

__all__ = [
    "Axis",
    "Bar",
    "Mark",
    "Series",
    "Size",
    "bar_chart",
    "histogram",
    "line_chart",
    "reliability_chart",
]
