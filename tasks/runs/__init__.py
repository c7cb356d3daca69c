"""What a run leaves behind: its files, its verification, its history, and what came in since."""
