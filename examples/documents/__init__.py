"""A script that makes documents to try things with."""
