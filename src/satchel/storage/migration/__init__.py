"""Transfer of an index from one store to another, verified by counts, hashes and questions."""
