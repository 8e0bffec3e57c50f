"""The tools of the scoreboard, one script each; every one runs in its own environment."""
