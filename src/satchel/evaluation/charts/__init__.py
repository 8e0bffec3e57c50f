"""Small SVG charts without scripts, for light and dark pages; a text alternative states the numbers."""

from satchel.evaluation.charts.bars import Mark, histogram, reliability_chart
from satchel.evaluation.charts.drawing import Axis, Size
from satchel.evaluation.charts.lines import Series, line_chart

__all__ = ["Axis", "Mark", "Series", "Size", "histogram", "line_chart", "reliability_chart"]
