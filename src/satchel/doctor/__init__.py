"""`satchel doctor`: checks of the installation, the settings and the index."""
