"""Endpoints that speak OpenAI's HTTP protocol."""
