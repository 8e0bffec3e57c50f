"""Where an index is stored: SQL shared by SQLite and PostgreSQL, and the transfer between stores."""
