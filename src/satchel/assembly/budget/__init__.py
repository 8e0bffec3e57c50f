"""The fourth stage: which hits fit, chosen by what they are worth and what they cost once written."""

from satchel.assembly.budget.in_order import take_in_order
from satchel.assembly.budget.knapsack import Candidate, pack
from satchel.assembly.budget.trim import trim_to_fit

__all__ = ["Candidate", "pack", "take_in_order", "trim_to_fit"]
