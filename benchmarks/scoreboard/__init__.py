"""Satchel and its peers on the same questions: `python -m benchmarks.scoreboard` (part of `make bench`)."""
