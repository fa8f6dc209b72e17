"""Recipes: reading a TOML recipe, checking it, and planning its steps.

Nothing is run here; `stages.run` executes the plan. The shipped recipes are in the folder `recipes` of the repository.
"""
