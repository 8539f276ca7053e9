# The compiled twin has the signatures of the readable one.
from priory._kernel.gamma_reference import compute_log_factorials as compute_log_factorials
from priory._kernel.gamma_reference import digamma as digamma
from priory._kernel.gamma_reference import log_gamma as log_gamma
from priory._kernel.gamma_reference import trigamma as trigamma
