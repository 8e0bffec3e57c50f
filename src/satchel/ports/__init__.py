"""What Satchel asks of the world."""
