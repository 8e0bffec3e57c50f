"""HTML report of an evaluation as a self-contained page."""

from satchel.evaluation.page.report import report_page

__all__ = ["report_page"]
