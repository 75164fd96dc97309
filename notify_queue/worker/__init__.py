"""The life of a job in a worker, in order: claim (which admits), deliver, complete.

``pipeline`` joins the steps.
"""
