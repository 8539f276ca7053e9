# The compiled twin has the signatures of the readable one.
from priory._kernel.rows_reference import add_cells as add_cells
from priory._kernel.rows_reference import add_weights as add_weights
from priory._kernel.rows_reference import mix_members as mix_members
from priory._kernel.rows_reference import step_parts as step_parts
from priory._kernel.rows_reference import weigh_parts as weigh_parts
