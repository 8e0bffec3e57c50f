"""The only place that names stores and integrations."""
