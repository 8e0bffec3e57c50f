"""The report of an evaluation as one page that needs nothing else."""

from satchel.evaluation.page.report import report_page

__all__ = ["report_page"]
