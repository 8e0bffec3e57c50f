"""Text and page embedders, one file each."""
