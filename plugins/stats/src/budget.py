"""How often each tool may be called. Nothing here knows that it runs in a plugin."""

from typing import Callable, Optional


def parse_max(text: Optional[str]) -> Optional[int]:
    """The operator's `max_calls`; None if there is no budget."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"grants.config.max_calls is a whole number, not {text}")
    return int(text)


def spend(
    tool: str,
    most: Optional[int],
    read: Callable[[str], Optional[bytes]],
    write: Callable[[str, bytes], None],
) -> Optional[str]:
    """Counts one call of a tool. Why it may not be made, if the budget is used up."""
    key = f"calls/{tool}"
    calls = int((read(key) or b"0").decode())
    if most is not None and calls >= most:
        return (
            f"`{tool}` was called {calls} times and may be called {most} times. "
            "Go on with what the earlier calls returned."
        )
    write(key, str(calls + 1).encode())
    return None
