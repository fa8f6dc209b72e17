"""How `compress` plans: budgets, the shapes that fit them, and the recipe that is run. It trains and measures nothing.

Without torch, except in `workload`, which measures how fast the teacher is.
"""
