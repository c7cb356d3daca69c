"""WHEN, and in what order: thin flows and the command line. A flow fits one screen and computes nothing."""
