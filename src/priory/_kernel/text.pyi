# The compiled twin has the signatures of the readable one.
from priory._kernel.text_reference import BagReader as BagReader
from priory._kernel.text_reference import Counter as Counter
from priory._kernel.text_reference import Index as Index
from priory._kernel.text_reference import OpenCounter as OpenCounter
from priory._kernel.text_reference import Rule as Rule
from priory._kernel.text_reference import SparseOpenCounter as SparseOpenCounter
from priory._kernel.text_reference import TokenHasher as TokenHasher
from priory._kernel.text_reference import are_tokens_distinct as are_tokens_distinct
