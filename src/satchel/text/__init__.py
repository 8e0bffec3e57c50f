"""Text operations independent of content: hidden characters, graphemes, repeated units, path patterns."""
