"""What is served: the one pointer, the door in front of it, and `resolve`, with which a reader of an index finds it."""

from kbgate.tasks.production.pointer import Examined, Target, resolve

__all__ = ["Examined", "Target", "resolve"]
