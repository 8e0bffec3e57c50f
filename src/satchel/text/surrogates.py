"""Text that every encoder accepts."""


def replace_surrogates(text: str) -> str:
    """The text with `?` for each lone surrogate, which tokenizers, readers of JSON and databases refuse."""
    return text.encode("utf-8", "replace").decode()
