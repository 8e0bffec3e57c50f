"""Documents that anybody may have made, read into pages of Markdown by child processes that can do no harm."""
