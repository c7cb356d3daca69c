"""WHAT is computed: plain typed functions, one stage a module.

Nothing here logs, prints or knows Prefect; only `stages.py` does. A room imports rooms below it, in one order: the ground
(`errors` ... `predicates`), metrics, index, retrieval, inputs, comparison, gate, runs, baseline, production, diagnosis,
stages, studies.
"""
