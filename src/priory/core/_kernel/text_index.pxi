# Lookup in a fixed vocabulary. The number of a token is its column; beginnings of n-grams that are not tokens themselves
# are numbered after the last column.


cdef class Index(Trie):
    cdef readonly int64_t size
    cdef readonly bint split

    def __init__(self, const uint8_t[::1] arena, const int64_t[::1] ends, bint split):
        cdef int64_t i, start, word, node, level, deepest = 0, spaces
        cdef uint8_t[::1] padded = np.zeros(arena.shape[0] + PAD, dtype=np.uint8)
        cdef const uint8_t* p
        cdef int64_t problem = 0
        self.size, self.split, start = ends.shape[0], split, 0
        for i in range(self.size):
            if not start < ends[i] <= arena.shape[0] or ends[i] - start >= LENGTH:
                raise ValueError("a token is empty, too long or outside of the arena")
            start = ends[i]
        if self.size == 0:
            return
        padded[: arena.shape[0]] = arena
        p = &padded[0]
        self.nodes = self.size
        cdef uint8_t[::1] depth = np.zeros(self.size, dtype=np.uint8)
        with nogil:
            if split:
                start = 0
                for i in range(self.size):
                    spaces = 0
                    for word in range(start, ends[i]):
                        spaces += p[word] == 32
                    depth[i] = spaces if spaces < 255 else 255
                    deepest = depth[i] if depth[i] > deepest else deepest
                    start = ends[i]
            for level in range(deepest + 1):  # words first: the parts of an n-gram must have their columns
                start = 0
                for i in range(self.size):
                    if depth[i] == level:
                        problem = planted(self, p + start, ends[i] - start, i, split)
                        if problem < 0:
                            break
                    start = ends[i]
                if problem < 0:
                    break
        if problem == NO_MEMORY:
            raise MemoryError
        if problem == UNKNOWN:
            raise ValueError(f"token {i} is in the vocabulary twice")

    def find_columns(self, const uint8_t[::1] arena, const int64_t[::1] ends):
        """The column of each token, or -1. The index must store its tokens whole."""
        cdef int64_t i, n = ends.shape[0], start = 0
        cdef Piece piece
        cdef int64_t[::1] out = np.full(n, UNKNOWN, dtype=np.int64)
        cdef uint8_t[::1] padded = np.zeros(arena.shape[0] + PAD, dtype=np.uint8)
        cdef const uint8_t* p = &padded[0]
        if self.split:
            raise ValueError("an index of words and n-grams does not hold its tokens whole")
        for i in range(n):
            if not start < ends[i] <= arena.shape[0]:
                raise ValueError("a token is empty or outside of the arena")
            start = ends[i]
        padded[: arena.shape[0]] = arena
        start = 0
        with nogil:
            for i in range(n):
                piece = piece_at(p + start, ends[i] - start)
                out[i] = find_word(self, &piece)
                start = ends[i]
        return np.asarray(out)

    def score(self, documents, Rule rule, const double[:, ::1] table, bint once, const double[::1] unknown):
        """Sum of the table's rows over the tokens of each document."""
        cdef Reader r = Reader(rule, documents)
        cdef int64_t i = 0, j, k = 0, c, groups = table.shape[1], node
        cdef double[:, ::1] scores = np.zeros((r.count, groups))
        cdef int32_t[::1] mark = np.zeros(self.size + 1 if once else 1, dtype=np.int32)
        cdef const double* rows = &table[0, 0] if table.shape[0] and groups else NULL
        cdef const double* row
        cdef double[::1] nothing = np.zeros(groups + 1)
        cdef const double* none = &nothing[0]
        cdef int32_t* seen = &mark[0]
        cdef double* out
        cdef bint slot = unknown is not None
        if table.shape[0] != self.size or (slot and unknown.shape[0] != groups):
            raise ValueError("one row of the table for each token of the index")
        if groups == 0:
            return np.asarray(scores)
        with nogil:
            for i in range(r.count):
                opened(r)
                out = &scores[i, 0]
                while r.at < r.documents[i].n:
                    k = block(r, &r.documents[i])
                    if k < 0:
                        break
                    k = looked_up(r, self, k, rows, groups, self.size)
                    for j in range(k):
                        node = r.nodes[j]
                        if node < 0 or node >= self.size:
                            if not slot:
                                continue
                            node = self.size
                        row = rows + node * groups if node < self.size else &unknown[0]
                        if once:  # branch-free: repetitions of a word are unpredictable
                            row = none if seen[node] == i + 1 else row
                            seen[node] = <int32_t>(i + 1)
                        for c in range(groups):
                            out[c] += row[c]
                if k < 0:
                    break
        raised(r, k, i)
        return np.asarray(scores)

    def encode(self, documents, Rule rule, bint unknown):
        """Rows of (column, count): row pointers, columns, and counts."""
        cdef Reader r = Reader(rule, documents)
        cdef int64_t i = 0, j, k = 0, node, used = 0, begin, room = 1024
        cdef int64_t[::1] ends = np.zeros(r.count + 1, dtype=np.int64)
        cdef int64_t[::1] where = np.full(self.size + 1, -1, dtype=np.int64)
        columns, counts = np.empty(room, dtype=np.int32), np.empty(room)
        cdef int32_t[::1] column = columns
        cdef double[::1] count = counts
        with nogil:
            for i in range(r.count):
                opened(r)
                begin = used
                while r.at < r.documents[i].n:
                    k = block(r, &r.documents[i])
                    if k < 0:
                        break
                    k = looked_up(r, self, k, NULL, 0, 0)
                    if used + k > room:
                        room = 2 * (used + k)
                        with gil:
                            columns, counts = grown(columns, room), grown(counts, room)
                            column, count = columns, counts
                    for j in range(k):
                        node = r.nodes[j]
                        if node < 0 or node >= self.size:
                            if not unknown:
                                continue
                            node = self.size
                        if where[node] < begin:
                            where[node] = used
                            column[used] = <int32_t>node
                            count[used] = 0.0
                            used += 1
                        count[where[node]] += 1.0
                if k < 0:
                    break
                ends[i + 1] = used
        raised(r, k, i)
        return np.asarray(ends), columns[:used].copy(), counts[:used].copy()


def grown(array, room):
    wider = np.empty(room, dtype=array.dtype)
    wider[: len(array)] = array
    return wider


cdef int64_t planted(Index index, const uint8_t* p, int64_t n, int64_t column, bint split) noexcept nogil:
    """Insert a token with its column; UNKNOWN if it is already there."""
    cdef int64_t start = 0, end = 0, beginning = -1, node
    cdef uint64_t key
    cdef Piece piece
    cdef Word* w
    cdef Gram* g
    cdef bint last
    while start <= n:
        end = n
        if split:
            end = start
            while end < n and p[end] != 32:
                end += 1
        last = end == n
        if make_room(index, 1, 1) < 0:
            return NO_MEMORY
        node = UNKNOWN
        if end > start:
            piece = piece_at(p + start, end - start)
            w = word_slot(index, &piece)
            if w.place == 0:
                node = column if last and start == 0 else index.nodes
                index.nodes += node != column
                if put_word(index, w, &piece, node) < 0:
                    return NO_MEMORY
            elif last and start == 0:
                return UNKNOWN
            node = w.node
        if start > 0 and beginning >= 0 and node >= 0:
            key = pair(beginning, node)
            g = gram_slot(index, key)
            if g.key == 0:
                g.key, g.node = key, column if last else index.nodes
                index.nodes += not last
                index.gram_used += 1
            elif last:
                return UNKNOWN
            beginning = g.node
        else:
            beginning = node if start == 0 else UNKNOWN
        start = end + 1
    return 0
