"""``make demo``: a shop whose work really fails, on a private PostgreSQL, told act by act.

The story checks what it tells, so it is a test too: the exit code is 0 only if all of it came true.
"""
