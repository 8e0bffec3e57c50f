"""What is true of text whatever it says: characters that hide, graphemes, units of meaning, path patterns."""
