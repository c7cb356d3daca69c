"""Retrieval methods, one a file: `@retriever(name)` on a function that connects to an index and returns its search.

A search takes questions and k and answers each with an `Outcome` and its lanes of (card, score). Lanes look at
`retrieval.candidates` rows, a fixed depth, because depth changes rankings; they are rolled up to cards before anything is
fused or cut.
"""
