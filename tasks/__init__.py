"""WHAT is computed: plain typed functions. Nothing here logs, prints or knows Prefect; only `stages` does.

A room imports rooms below it. From the ground up: errors, secret, git, settings, records, tables, schema, findings, clock,
domain, identity, results, conclusions, outcomes, registry, predicates; then metrics, index, retrieval, comparison, gate (the
parts there are), inputs (what a suite says, checked against these parts), runs, baseline, production, diagnosis, stages, exam
(the pipeline, once), studies.

Public for readers of an index, and nothing else: `kbgate.tasks.production.resolve` and what it returns.
"""
