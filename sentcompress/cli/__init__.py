"""The command line: parsing, terminal output and error reporting.

Each module of a command holds only the output for that command. Options are declared in `commands`, and the work is
done in `stages`; nothing is computed here.
"""
