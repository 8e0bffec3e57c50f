"""The store in PostgreSQL with pgvector: any number of workspaces, writers and readers, guarded row by row."""
