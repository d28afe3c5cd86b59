"""Running a stranger's web application once, contained, to hear what it says its routes are.

For evaluation only: nothing on the index path imports this package, and no import-time work is done
here because the jail loads it in a fresh interpreter.
"""
