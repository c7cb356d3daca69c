"""Metrics, one decorated function each: `@metric(name, source=...)` on `f(case, k)`, in the file of its kind.

A metric looks at one `Judged` case and returns its figure, or None where it is not defined: it then contributes no key,
never a 0. Add one here and it is computed, stored, compared, reported and listed by `kbgate metrics`.
"""
