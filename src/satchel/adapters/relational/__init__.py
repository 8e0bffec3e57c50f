"""What stores over tables have in common: writing, reading, who may read, and the evidence for an answer.

The statements are SQL that SQLite and PostgreSQL both understand. A store gives a `Database` that runs them.
"""
