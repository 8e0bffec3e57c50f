"""Text and page embedders."""
