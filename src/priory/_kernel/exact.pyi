# The compiled twin has the signatures of the readable one.
from priory._kernel.exact_reference import combine as combine
from priory._kernel.exact_reference import divide as divide
from priory._kernel.exact_reference import split as split
from priory._kernel.exact_reference import sum_powers as sum_powers
from priory._kernel.exact_reference import variances as variances
