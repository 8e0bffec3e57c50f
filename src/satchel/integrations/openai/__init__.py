"""Clients for endpoints with OpenAI's HTTP protocol."""
