"""Vaults, Notion exports, chats and other sources, read as blocks."""
