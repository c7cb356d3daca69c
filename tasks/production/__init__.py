"""What is served: the pointer its readers follow, and the rules by which it moves."""
