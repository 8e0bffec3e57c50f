"""How far a store in PostgreSQL goes: filling it, measuring it, and what follows for more than fits here."""
