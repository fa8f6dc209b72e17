"""The planning of `compress`: budgets, the shapes that fit them, and the recipe that is run. Nothing is trained here.

`planning` turns a `request` into a plan: `shapes` lists the candidates, with sizes from `graph_size`; `budget` divides
the time, with measurements of `workload` and estimates of `measuring_time`; `recipe` and `plan_words` write the plan,
and `plan_file` reads it back. While it runs, `pace` adapts its last training; `verdict` summarises the result. Only
`planning`, `request` and `workload`, which find or load the teacher, need torch.
"""
