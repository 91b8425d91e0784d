"""Texts that a worker tells its agent."""

from __future__ import annotations

TEXT_MAX = 440  # bytes of one line


def cut(text: str, most: int = TEXT_MAX) -> str:
    """At a word, with a sign that something is missing."""
    text = " ".join(text.split())
    if len(text.encode()) <= most:
        return text
    head = text.encode()[: most - 4].decode(errors="ignore")
    return head[: head.rfind(" ") if " " in head[most // 2 :] else len(head)].rstrip() + " ..."
