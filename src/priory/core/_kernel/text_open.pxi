# Mutable counts for one document at a time, and scores from the current counts. The cost of a call depends only on the
# document: no table is built, and no marks are cleared.

cdef extern from "<math.h>" nogil:
    double log(double)
    double rint(double)

cdef struct Entry:
    uint32_t document  # the last document with the token
    uint32_t place     # among the entries of that document


cdef class OpenCounter(Counter):
    cdef readonly int64_t n_used     # tokens with a positive count in some class
    cdef readonly object totals      # (classes,): total counts
    cdef readonly object first_nodes # (tokens,): the numbers of the tokens that were there from the start
    cdef double[::1] total
    cdef Entry* entry                # of each node
    cdef int64_t* found              # the nodes of a document, each once
    cdef double* times               # and their occurrences
    cdef int64_t entry_room, found_room, unknown
    cdef uint32_t document
    cdef dict readers

    def __init__(self, int64_t groups, const uint8_t[::1] arena, const int64_t[::1] ends,
                 const double[:, ::1] counts, bint split):
        """Start from these counts (tokens, classes)."""
        cdef int64_t i, c, node, start = 0
        cdef uint8_t[::1] padded = np.zeros(arena.shape[0] + PAD, dtype=np.uint8)
        cdef double* cell
        Counter.__init__(self, groups)
        if counts.shape[0] != ends.shape[0] or (ends.shape[0] and counts.shape[1] != groups):
            raise ValueError("one row of counts for each token, with one for each class")
        self.readers, self.totals = {}, np.zeros(groups)
        self.total, self.first_nodes = self.totals, np.zeros(ends.shape[0], dtype=np.int64)
        cdef int64_t[::1] first = self.first_nodes
        padded[: arena.shape[0]] = arena
        for i in range(ends.shape[0]):
            if not start < ends[i] <= arena.shape[0] or ends[i] - start >= LENGTH:
                raise ValueError("a token is empty, too long or outside of the arena")
            node = node_of(self, &padded[start], ends[i] - start, split)
            if node < 0:
                raise MemoryError
            first[i] = node
            cell = self.cells + node * self.width
            self.n_used += is_empty(cell, groups)
            for c in range(groups):
                cell[c] += counts[i, c]
                self.total[c] += counts[i, c]
            self.n_used -= is_empty(cell, groups)
            start = ends[i]

    def __dealloc__(self):
        free(self.entry)
        free(self.found)
        free(self.times)

    def learn(self, document, Rule rule, int64_t group, bint once):
        """Add the tokens of a document to the counts of its class."""
        cdef int64_t i, k = entries(self, document, rule, True)
        cdef double* cell
        cdef double x
        if not 0 <= group < self.groups:
            raise ValueError("a class out of range")
        for i in range(k):
            x = 1.0 if once else self.times[i]
            cell = self.cells + self.found[i] * self.width
            self.n_used += is_empty(cell, self.groups)
            cell[group] += x
            self.total[group] += x

    def forget(self, document, Rule rule, int64_t group, bint once):
        """Remove the tokens of a document and return True; return False, changing nothing, if they are not there."""
        cdef int64_t i, k = entries(self, document, rule, False)
        cdef double* cell
        cdef double x
        if not 0 <= group < self.groups:
            raise ValueError("a class out of range")
        if self.unknown:
            return False
        for i in range(k):
            x = 1.0 if once else self.times[i]
            if subtracted(self.cells[self.found[i] * self.width + group], x) < 0:
                return False
        for i in range(k):
            x = 1.0 if once else self.times[i]
            cell = self.cells + self.found[i] * self.width
            cell[group] = subtracted(cell[group], x)
            self.total[group] -= x
            self.n_used -= is_empty(cell, self.groups)
        return True

    def score(self, document, Rule rule, bint once, double alpha, bint complement):
        """Sum of log(count + alpha) over the tokens in use, (classes,), and the number of tokens in the sum.

        ``complement`` counts what all other classes have together.
        """
        cdef int64_t i, c, k = entries(self, document, rule, False)
        cdef double length = 0.0, x, whole
        cdef double* cell
        scores = np.zeros(self.groups)
        cdef double[::1] sums = scores
        for i in range(k):
            cell = self.cells + self.found[i] * self.width
            whole = 0.0
            for c in range(self.groups):
                whole += cell[c]
            if whole == 0.0:
                continue
            x = 1.0 if once else self.times[i]
            length += x
            for c in range(self.groups):
                sums[c] += x * log((whole - cell[c] if complement else cell[c]) + alpha)
        return scores, length

    def find(self, document, Rule rule):
        """The numbers of the distinct known tokens of a document, and their occurrences."""
        cdef int64_t i, k = entries(self, document, rule, False)
        nodes, times = np.empty(k, dtype=np.int64), np.empty(k)
        cdef int64_t[::1] node = nodes
        cdef double[::1] time = times
        for i in range(k):
            node[i], time[i] = self.found[i], self.times[i]
        return nodes, times


cdef inline bint is_empty(const double* cell, int64_t groups) noexcept nogil:
    cdef int64_t c
    for c in range(groups):
        if cell[c] != 0:
            return False
    return True


cdef inline double subtracted(double total, double x) noexcept nogil:
    """Subtract from a count as `priory.core.statistics.subtract_counts` does; -1 if the count is too small."""
    cdef double left = total - x, units = 4096.0 * total
    if units == rint(units) and units < 4503599627370496.0:
        return left if left >= 0 else -1.0
    if left < -1e-12 * total:
        return -1.0
    return 0.0 if left <= 1e-12 * total else left


cdef int64_t node_of(OpenCounter c, const uint8_t* p, int64_t n, bint split) noexcept nogil:
    """The number of a token given as text; ``split`` at spaces into the words of an n-gram."""
    cdef int64_t start = 0, end, node = UNKNOWN
    cdef Piece piece
    cdef Word* w
    while start < n:
        end = start
        while end < n and not (split and p[end] == 32):
            end += 1
        if ready(c, 1, 1) < 0:
            return NO_MEMORY
        piece = piece_at(p + start, end - start)
        w = word_of(c, &piece)
        if w == NULL:
            return NO_MEMORY
        node = w.node if start == 0 else gram_of(c, node, w.node).node
        start = end + 1
    return node


cdef Reader reader_of(OpenCounter c, Rule rule, document):
    """Scratch memory for this rule, positioned at the document."""
    cdef Reader r = c.readers.get(rule)
    cdef Document* d
    if r is None:
        r = c.readers[rule] = Reader(rule, [""])
    d = &r.documents[0]
    if isinstance(document, str):
        d.data, d.n = <const uint8_t*>PyUnicode_DATA(document), PyUnicode_GET_LENGTH(document)
        d.width = PyUnicode_KIND(document)
    elif isinstance(document, bytes):
        d.data, d.n, d.width = <const uint8_t*>PyBytes_AS_STRING(document), PyBytes_GET_SIZE(document), 0
    else:
        raise TypeError(f"the document is {type(document).__name__}, not str or bytes")
    opened(r)
    return r


cdef int64_t entries(OpenCounter c, document, Rule rule, bint grow) except -1:
    """Write the distinct tokens of a document to ``c.found`` and ``c.times``; with ``grow``, new tokens get a number."""
    cdef Reader r = reader_of(c, rule, document)
    cdef Document* d = &r.documents[0]
    cdef int64_t j, k = 0, node, n = 0, room
    cdef Entry* e
    c.unknown = 0
    c.document += 1
    if c.document == 0:  # overflow after four billion documents
        memset(c.entry, 0, c.entry_room * sizeof(Entry))
        c.document = 1
    while r.at < d.n:
        k = block(r, d)
        if k >= 0:
            k = numbered(r, c, k, 0, False) if grow else looked_up(r, c, k, c.cells, c.width, c.nodes)
        if k < 0:
            raised(r, k, 0)
        if c.entry_room < c.room:
            e = <Entry*>realloc(c.entry, c.room * sizeof(Entry))
            if e == NULL:
                raise MemoryError
            memset(e + c.entry_room, 0, (c.room - c.entry_room) * sizeof(Entry))
            c.entry, c.entry_room = e, c.room
        if n + k > c.found_room:
            room = 2 * (n + k)
            c.found = <int64_t*>realloc(c.found, room * sizeof(int64_t))
            c.times = <double*>realloc(c.times, room * sizeof(double))
            if c.found == NULL or c.times == NULL:
                raise MemoryError
            c.found_room = room
        for j in range(k):
            if r.nodes[j] >= 0:
                soon(&c.entry[r.nodes[j]])
        for j in range(k):
            node = r.nodes[j]
            if node < 0:
                c.unknown += 1
                continue
            e = &c.entry[node]
            if e.document != c.document:
                e.document, e.place = c.document, <uint32_t>n
                c.found[n], c.times[n] = node, 0.0
                n += 1
            c.times[e.place] += 1.0
    return n
