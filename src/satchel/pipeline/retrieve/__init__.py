"""From a question to ranked hits: understand it, ask the store for evidence, weigh the evidence."""
