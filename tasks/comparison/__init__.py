"""A run beside its baseline: scored, compared, with how sure each figure is."""
