"""What is served: the one pointer, the door in front of it, and `resolve`, with which a reader of an index finds it."""

from kbgate.tasks.production.places import resolve
from kbgate.tasks.production.pointer import Examined, Target

__all__ = ["Examined", "Target", "resolve"]
