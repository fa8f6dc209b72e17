"""How `compress` plans: budgets, the shapes that fit them, and the recipe that is run. It trains nothing.

Only `workload` measures, namely how fast the teacher is, and needs torch for it.
"""
