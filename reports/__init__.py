"""HOW IT IS TOLD: a view of one evaluation, and the templates that print it. Computes nothing."""
