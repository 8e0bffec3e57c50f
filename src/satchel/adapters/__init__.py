"""Who answers: other people's libraries behind our ports, and their objects turned into ours."""
