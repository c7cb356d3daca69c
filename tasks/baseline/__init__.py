"""What was accepted: its files, its anchor, and two of them side by side."""
