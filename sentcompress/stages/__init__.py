"""The stages: one module per command, each with `run(params, work, reporter)`, which does the work of the command.

Options are declared in `commands`, terminal output belongs to `cli`, and algorithms to the other packages. Stages
neither print nor import one another.
"""
