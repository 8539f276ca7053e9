# Read texts in one pass: every token gets a number at its first occurrence, and a document is a row of such numbers.
# The single cell of a token is the position after its latest entry; zero if it has occurred only within n-grams.


cdef class BagReader(Counter):
    cdef int64_t entries

    def __init__(self):
        Counter.__init__(self, 1)

    def read(self, documents, Rule rule):
        """Rows of (number, count): row pointers, token numbers, and counts."""
        cdef Reader r = Reader(rule, documents)
        cdef int64_t i = 0, j, k = 0, used = 0, begin, room = 1024, before = self.entries
        cdef int64_t[::1] ends = np.zeros(r.count + 1, dtype=np.int64)
        cdef double* place
        numbers, counts = np.empty(room, dtype=np.int32), np.empty(room)
        cdef int32_t[::1] number = numbers
        cdef double[::1] count = counts
        with nogil:
            for i in range(r.count):
                opened(r)
                begin = before + used
                while r.at < r.documents[i].n:
                    k = block(r, &r.documents[i])
                    if k >= 0:
                        k = numbered(r, self, k, 0, False)
                    if k < 0:
                        break
                    if used + k > room:
                        room = 2 * (used + k)
                        with gil:
                            numbers, counts = grown(numbers, room), grown(counts, room)
                            number, count = numbers, counts
                    for j in range(k):
                        place = self.cells + r.nodes[j]
                        if place[0] <= begin:
                            number[used] = <int32_t>r.nodes[j]
                            count[used] = 0.0
                            used += 1
                            place[0] = <double>(before + used)
                        count[<int64_t>place[0] - before - 1] += 1.0
                if k < 0:
                    break
                ends[i + 1] = used
        raised(r, k, i)
        self.entries += used
        return np.asarray(ends), numbers[:used].copy(), counts[:used].copy()

    def merge(self, Counter other):
        """Add the tokens of another reader; returns the number here of each of its tokens."""
        return absorb(self, other, None)

    def result(self):
        """The sorted tokens one after the other, the end of each, and the token of each number (-1 if none)."""
        arena, ends, _, _ = Counter.result(self)
        live = np.asarray(<double[:self.nodes]>self.cells) > 0 if self.nodes else np.zeros(0, dtype=bool)
        order = sorted_nodes(self)
        tokens = np.full(self.nodes, -1)
        tokens[order[live[order]]] = np.arange(len(ends))
        return arena, ends, tokens
