"""The inspector page: plain files, served as they are."""
