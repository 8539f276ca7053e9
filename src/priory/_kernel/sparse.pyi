# The compiled twin has the signatures of the readable one.
from priory._kernel.sparse_reference import add_products as add_products
from priory._kernel.sparse_reference import add_transposed_products as add_transposed_products
from priory._kernel.sparse_reference import ascend_rows as ascend_rows
from priory._kernel.sparse_reference import copy_rows as copy_rows
from priory._kernel.sparse_reference import count_entries as count_entries
from priory._kernel.sparse_reference import judge_logits as judge_logits
from priory._kernel.sparse_reference import multiply_rows as multiply_rows
from priory._kernel.sparse_reference import order_entries as order_entries
from priory._kernel.sparse_reference import score_cells as score_cells
from priory._kernel.sparse_reference import score_left_out as score_left_out
from priory._kernel.sparse_reference import sort_rows as sort_rows
