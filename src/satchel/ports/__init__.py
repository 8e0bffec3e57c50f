"""The interfaces that Satchel requires from stores, models and workers."""
