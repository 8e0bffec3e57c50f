"""A small project: two modules, a test of one and a guide, which many tests index and ask about."""

from __future__ import annotations

RETRY = '''"""Retrying what failed."""

import random


class Backoff:
    """Waits longer after every failure."""

    def delay(self, attempt: int) -> float:
        """How long to wait before the next attempt."""
        base = 0.5 * 2**attempt
        return base + random.random()

    def reset(self) -> None:
        self.attempt = 0
'''


CLIENT = '''from retry import Backoff


def fetch(url: str) -> bytes:
    """Download a page, trying again on errors."""
    backoff = Backoff()
    for attempt in range(5):
        wait(backoff.delay(attempt))
    return b""


def parse_headers(raw):
    return dict(line.split(": ") for line in raw.splitlines())
'''


TEST = """from client import fetch


def test_backoff_delay_grows():
    assert fetch("x") == b""
"""


GUIDE = """# Guide

## Retrying

The backoff doubles the delay after each failure.

## Headers

Headers are parsed lazily.
"""
