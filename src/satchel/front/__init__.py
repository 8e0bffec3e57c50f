"""What stands between the surfaces and the engine: questions, their answers, and who asks."""
