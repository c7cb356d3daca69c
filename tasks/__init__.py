"""WHAT is computed: plain typed functions, one stage a module.

Nothing here logs, prints or knows Prefect; only `stages.py` does. A stage module imports the ground floor (`domain`,
`settings`, `errors`, `registry`, `records`) and its own third-party library, and another stage only along
retrieval -> indexing -> embedding.
"""
