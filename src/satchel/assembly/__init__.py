"""Assembly turns candidates into a context: admit, rank, pack, render, report."""
