"""What every way in asks: clients, options, identity, automatic indexing, the factory."""
