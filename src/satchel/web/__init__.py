"""The inspector page: static files (HTML, JavaScript, CSS)."""
