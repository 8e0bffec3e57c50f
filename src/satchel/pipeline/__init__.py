"""From hits to a finished context, stage by stage; `build.py` tells the story."""
