"""Mutation testing of kbgate's own code: is there a line that could be wrong and no test would say so?

`python -m tests.mutants --seed 0` copies the code and its tests into a temporary folder, learns which fast test runs which
line, changes one thing at a time (`<` to `<=`, `a or b` to `a`, a number by one, an argument to None) and runs the tests of
that line until one fails. A change that none notices is printed as a survivor.

Two samples are drawn by the seed: one where the verdict is made, of which at most two may survive, and one of everything
else that fast tests run, of which at most 5 % may. Survivors that a person read and found to change nothing stand with the
reason in equivalent.toml, and are not counted.

mutmut makes the changes and nothing else. Its runner passes over every function with a decorator, and here each metric,
check and cause is one; it samples nothing, and chooses tests by function instead of by line. The changed module is given
to the import system of a forked process, so no file is written and the originals cannot be imported by mistake.
"""
