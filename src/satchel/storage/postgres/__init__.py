"""The PostgreSQL store with pgvector: any number of workspaces, writers and readers, with row-level security."""
