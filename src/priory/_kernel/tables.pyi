# The compiled twin has the signatures of the readable one.
from priory._kernel.table_reference import code_counts as code_counts
from priory._kernel.table_reference import group_sums as group_sums
from priory._kernel.table_reference import lookup as lookup
from priory._kernel.table_reference import quadratic as quadratic
from priory._kernel.table_reference import student as student
from priory._kernel.table_reference import student_mixture as student_mixture
from priory._kernel.table_reference import value_counts as value_counts
