"""How `compress` plans: budgets, the shapes that fit them, and the recipe that is run. It trains nothing.

`planning` makes a plan of a `request`: candidates are from `shapes`, by sizes from `graph_size`; `budget` shares the
time out, by what `workload` and `measuring_time` know; `recipe` and `plan_words` write it, `plan_file` reads it back.
While it runs, `pace` adapts its last training; `verdict` says what came of it. Only `planning`, `request` and
`workload`, which find or load the teacher, need torch.
"""
