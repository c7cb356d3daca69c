"""Headings: what Markdown takes for one, and what only looks like it."""

from __future__ import annotations

import pytest

from kbgate.tasks.inputs.headings import first_heading


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("# One\n\n# Two", "One"),
        ("Text first.\n\n### Three ###\n", "Three"),
        ("   ## Of C#", "Of C#"),
        ("# #\n# Real", "Real"),
        ("Guide\n=====\n\n# Later", "Guide"),
        ("```bash\n# remove everything first\n```\n# After", "After"),
        ("~~~\n# a\n```\n# b\n~~~~\n# After", "After"),
        ("````\n```\n# inside\n```\n````\n# After", "After"),
        ("```\n# never closed\n", ""),
        ("#urgent #hr\n\nThe gym is closed.", ""),
        ("####### seven", ""),
        ("    # code, by its indentation", ""),
        ("#\n\n# Real", "Real"),
        ("\n====\n", ""),
        ("", ""),
        ("# a" + " " * 100_000 + "b#", "a" + " " * 100_000 + "b#"),  # in no time
    ],
)
def test_a_heading_is_what_markdown_takes_for_one(text: str, heading: str) -> None:
    assert first_heading(text) == heading
