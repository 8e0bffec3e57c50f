"""The API's routes, one module for each thing that can be asked."""
