# The compiled twin has the signatures of the readable one.
from priory._kernel.products_reference import add_rows as add_rows
from priory._kernel.products_reference import cut_digits as cut_digits
from priory._kernel.products_reference import find_limb_range as find_limb_range
from priory._kernel.products_reference import flushes_denormals as flushes_denormals
from priory._kernel.products_reference import place_sums as place_sums
from priory._kernel.products_reference import transform_sums as transform_sums
