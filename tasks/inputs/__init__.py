"""What a suite says: its settings, its cards and its cases, read and held against each other."""
