"""Citation markers, quotations and statements of an answer, checked against its context."""
