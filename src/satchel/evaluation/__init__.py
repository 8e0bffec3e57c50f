"""Evaluation of a workspace: from questions with expected content to figures with confidence intervals.

from satchel.evaluation import evaluate, read_dataset

with satchel.open("path/to/repository") as client:
    evaluation = evaluate(client, read_dataset(Path("questions.jsonl")), budgets=[1000, 4000])
print(evaluation.figures()["cover@1000"])
"""

from satchel.evaluation.dataset import EvalQuestion, Expected, question_from, read_dataset
from satchel.evaluation.outcome import Comparison, Evaluation, compare, read_evaluation, to_dict
from satchel.evaluation.running import evaluate

__all__ = [
    "Comparison",
    "EvalQuestion",
    "Evaluation",
    "Expected",
    "compare",
    "evaluate",
    "question_from",
    "read_dataset",
    "read_evaluation",
    "to_dict",
]
