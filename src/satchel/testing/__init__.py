"""Contract suites and factories for people who write a store or an embedder."""
