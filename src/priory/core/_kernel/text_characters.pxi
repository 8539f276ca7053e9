# N-grams of characters, as in scikit-learn: over the whole text, or within words.


cdef int64_t characters(Reader r, Document* d) noexcept nogil:
    """N-grams of characters, as many as fit into the pieces; the whole document is lower-cased first."""
    cdef int64_t k = 0, n, begin, width
    if r.at == 0:
        n = folded_runs(r, d)
        if n < 0:
            return n
        r.runs, r.run, r.first, r.gram = n, 0, 0, r.rule.low
    while r.run < r.runs and k < BLOCK:
        begin = r.stops[r.run - 1] if r.run else 0
        n = r.stops[r.run] - begin
        if r.gram > r.rule.high or (r.gram > n and not r.rule.padded):
            r.run, r.first, r.gram = r.run + 1, 0, r.rule.low
            continue
        width = r.gram if r.gram < n else n
        begin += r.first
        r.pieces[k].at = r.low + r.starts[begin]
        r.pieces[k].n = r.starts[begin + width] - r.starts[begin]
        k += 1
        r.first += 1
        if r.first + width > n:
            r.first, r.gram = 0, r.gram + 1 if r.gram < n else r.rule.high + 1
    r.at = d.n if r.run >= r.runs else 1
    return k


cdef int64_t folded_runs(Reader r, Document* d) noexcept nogil:
    """Lower-case the document and collapse its white space, or pad each word with spaces."""
    cdef int64_t at = 0, o = 0, k = 0, runs = 0, spaces = 0, units
    cdef uint8_t kind
    cdef uint32_t c
    if d.n > 1 << 29 or enough(r, d.n) < 0:
        return NO_MEMORY
    while at < d.n:
        units = folded_at(r, d, at, &c, &kind)
        if units == 0:
            return MALFORMED
        at += units
        if kind == SPACE and spaces and not r.rule.padded:
            if spaces == 1:
                k -= 1
                o = r.starts[k]
                r.low[o] = 32
                o += 1
                k += 1
        elif kind == SPACE and r.rule.padded:
            if k and not spaces:
                o, k = blank(r, o, k, at - units - 1), k + 1
                r.stops[runs] = <uint32_t>k
                runs += 1
        else:
            if r.rule.padded and (spaces or k == 0):
                o, k = blank(r, o, k, at - units), k + 1
            r.starts[k] = <uint32_t>o
            if r.places != NULL:
                r.places[o] = <uint32_t>(at - units)
            o += encoded(c, r.low + o)
            k += 1
        spaces = spaces + 1 if kind == SPACE else 0
    if r.rule.padded and k and not spaces:
        o, k = blank(r, o, k, at - 1), k + 1
    r.starts[k] = <uint32_t>o
    if k and (not r.rule.padded or not spaces):
        r.stops[runs] = <uint32_t>k
        runs += 1
    return runs


cdef inline int64_t blank(Reader r, int64_t o, int64_t k, int64_t place) noexcept nogil:
    r.starts[k] = <uint32_t>o
    if r.places != NULL:
        r.places[o] = <uint32_t>place
    r.low[o] = 32
    return o + 1


cdef int enough(Reader r, int64_t n) noexcept nogil:
    """Allocate memory for the n-grams of characters of a document of n units."""
    cdef void* p
    if n + 1 > r.starts_room:
        r.starts_room = 2 * n + 64
        p = realloc(r.low, 6 * r.starts_room + PAD)
        if p == NULL:
            return NO_MEMORY
        r.low = <uint8_t*>p
        memset(r.low, 0, 6 * r.starts_room + PAD)
        p = realloc(r.starts, (3 * r.starts_room + 8) * sizeof(uint32_t))
        if p == NULL:
            return NO_MEMORY
        r.starts = <uint32_t*>p
        p = realloc(r.stops, (r.starts_room + 8) * sizeof(uint32_t))
        if p == NULL:
            return NO_MEMORY
        r.stops = <uint32_t*>p
    return 0
