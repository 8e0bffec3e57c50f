"""The fourth stage: which hits fit, chosen by what they are worth and what they cost once written."""

from satchel.pipeline.budget.in_order import take_in_order
from satchel.pipeline.budget.pack import Candidate, pack
from satchel.pipeline.budget.trim import trim_to_fit

__all__ = ["Candidate", "pack", "take_in_order", "trim_to_fit"]
