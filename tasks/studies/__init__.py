"""What runs the exam many times: how much a verdict is worth, and what it would miss."""
