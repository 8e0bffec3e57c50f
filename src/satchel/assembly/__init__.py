"""Candidates in, a context out: admit, rank, pack, render, report."""
