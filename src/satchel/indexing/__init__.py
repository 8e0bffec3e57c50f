"""Walk, read, split, embed and store the files of a folder."""
