# Counting: every token gets a number at its first occurrence, and a row of cells: the count of each class and, if rare
# tokens are dropped while counting, an upper bound of the counts missed before.

# Limit for counts: a quarter of the memory, because growing them needs a copy.
cdef int64_t MOST_BYTES = (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 33) // 4


cdef class Counter(Trie):
    cdef uint64_t* origin  # of each node: the position of a word, or PAIR | key
    cdef double* cells
    cdef int64_t groups, width, room, most, bones
    cdef double missed

    def __init__(self, int64_t groups, int64_t most=0):
        self.groups, self.most = groups, most
        self.width = groups + (most > 0)

    def __dealloc__(self):
        free(self.origin)
        free(self.cells)

    def add(self, documents, Rule rule, const int32_t[::1] group, const double[::1] weight, bint once):
        """Count the tokens of the documents, each for its class."""
        cdef Reader r = Reader(rule, documents)
        cdef int64_t i = 0, k = 0
        cdef double w
        if group.shape[0] != r.count or (weight is not None and weight.shape[0] != r.count):
            raise ValueError("one class and one weight for each document")
        for i in range(r.count):
            if not 0 <= group[i] < self.groups:
                raise ValueError("a class out of range")
        with nogil:
            unmarked(self)
            for i in range(r.count):
                opened(r)
                w = 1.0 if weight is None else weight[i]
                while r.at < r.documents[i].n:
                    k = block(r, &r.documents[i])
                    if k >= 0:
                        k = numbered(r, self, k, <uint32_t>(i + 1), once)
                    if k < 0:
                        break
                    counted(r, self, k, group[i], w)
                if k < 0:
                    break
                if self.most and self.nodes - self.bones > self.most:
                    with gil:
                        self.prune(self.most, self.most // 2)
        raised(r, k, i)

    def prune(self, int64_t most, int64_t kept):
        """If there are more than ``most`` tokens, drop the rarest until at most ``kept`` are left."""
        cells = np.asarray(<double[:self.nodes, :self.width]>self.cells) if self.nodes else np.zeros((0, self.width))
        total = cells[:, : self.groups].sum(axis=1)
        live = np.flatnonzero(total > 0)
        self.bones = self.nodes - len(live)
        if len(live) <= most:
            return
        upper = total + cells[:, self.width - 1]
        self.missed = max(self.missed, np.partition(upper[live], len(live) - kept - 1)[len(live) - kept - 1])
        keep = np.zeros(self.nodes, dtype=np.uint8)
        keep[live[upper[live] > self.missed]] = 1
        fresh = Counter(self.groups, self.most)
        (<Counter>fresh).missed = self.missed
        absorb(fresh, self, keep)
        swap(self, fresh)
        self.bones = self.nodes - int(keep.sum())

    def merge(self, Counter other):
        """Add the counts of another counter."""
        missed = self.missed + other.missed
        absorb(self, other, None)
        self.missed = missed
        if self.most and self.nodes:
            np.asarray(<double[:self.nodes, :self.width]>self.cells)[:, self.width - 1] = missed

    def result(self):
        """The sorted tokens one after the other, the end of each, their counts, and a bound on the error of any count."""
        cdef int64_t node, kept = 0, j, total = 0, n = self.nodes, at
        cdef uint64_t key
        if self.most:
            self.prune(self.most, self.most)
            n = self.nodes
        cdef uint32_t[::1] length = np.zeros(n + 1, dtype=np.uint32)
        cdef uint8_t[::1] live = np.zeros(n + 1, dtype=np.uint8)
        with nogil:
            for node in range(n):
                key = self.origin[node]
                if key & PAIR:
                    length[node] = length[beginning_of(key)] + 1 + length[last_of(key)]
                else:
                    length[node] = key & LENGTH
                for j in range(self.groups):
                    if self.cells[node * self.width + j] != 0:
                        live[node] = 1
                        total += length[node]
                        kept += 1
                        break
        cdef uint8_t[::1] arena = np.empty(total, dtype=np.uint8)
        cdef int64_t[::1] ends = np.empty(kept, dtype=np.int64)
        cdef double[:, ::1] counts = np.empty((kept, self.groups))
        cdef const int64_t[::1] order = sorted_nodes(self)
        kept = at = 0
        with nogil:
            for j in range(n):
                node = order[j]
                if live[node]:
                    at += length[node]
                    spelt(self, node, &arena[0] + at)
                    ends[kept] = at
                    memcpy(&counts[kept, 0], self.cells + node * self.width, self.groups * sizeof(double))
                    kept += 1
        return np.asarray(arena), np.asarray(ends), np.asarray(counts), self.missed


cdef void spelt(Counter c, int64_t node, uint8_t* end) noexcept nogil:
    """Write the text of a token so that it stops at ``end``."""
    cdef uint64_t key = c.origin[node], place, n
    while True:
        place = c.origin[last_of(key)] if key & PAIR else key
        n = place & LENGTH
        memcpy(end - n, c.arena + (place >> 24), n)
        if not key & PAIR:
            return
        end -= n + 1
        end[0] = 32
        key = c.origin[beginning_of(key)]


cdef void raised(Reader r, int64_t problem, int64_t document) except *:
    if problem == MALFORMED:
        raise UnicodeError(document, r.bad)
    if problem == NO_MEMORY:
        raise MemoryError


cdef int ready(Counter c, int64_t words, int64_t grams) noexcept nogil:
    """Reserve memory for more tokens in the tables and cells."""
    cdef int64_t room = c.room if c.room else 1, i
    cdef void* p
    if c.nodes + words + grams > MOST_NODES or make_room(c, words, grams) < 0:
        return NO_MEMORY
    while room < c.nodes + words + grams:
        room *= 2
    if room == c.room:
        return 0
    if room > MOST_BYTES // 8 // c.width:
        return NO_MEMORY
    p = realloc(c.origin, room * sizeof(uint64_t))
    if p == NULL:
        return NO_MEMORY
    c.origin = <uint64_t*>p
    p = table(room * c.width * sizeof(double))
    if p == NULL:
        return NO_MEMORY
    if c.cells != NULL:
        memcpy(p, c.cells, c.nodes * c.width * sizeof(double))
        free(c.cells)
    c.cells, c.room = <double*>p, room
    if c.most:
        for i in range(c.nodes, room):
            c.cells[i * c.width + c.width - 1] = c.missed
    return 0


cdef inline Word* word_of(Counter c, const Piece* piece) noexcept nogil:
    """The slot of a word; a new word gets the next number. NULL if there is no memory for it."""
    cdef Word* w = word_slot(c, piece)
    if unlikely(w.place == 0):
        if put_word(c, w, piece, c.nodes) < 0:
            return NULL
        c.origin[c.nodes] = w.place
        c.nodes += 1
    return w


cdef inline Gram* gram_of(Counter c, int64_t beginning, int64_t last) noexcept nogil:
    """The slot of an n-gram; a new one gets the next number."""
    cdef uint64_t key = pair(beginning, last)
    cdef Gram* g = gram_slot(c, key)
    if g.key == 0:
        g.key, g.node, g.mark = key, <uint32_t>c.nodes, 0
        c.origin[c.nodes] = PAIR | key
        c.nodes += 1
        c.gram_used += 1
    return g


cdef void unmarked(Counter c) noexcept nogil:
    """Reset the marks: no document has been read yet."""
    cdef uint64_t i
    for i in range(c.word_size):
        c.words[i].mark = 0
    for i in range(c.gram_size):
        c.grams[i].mark = 0


cdef int64_t numbered(Reader r, Counter c, int64_t k, uint32_t document, bint once) noexcept nogil:
    """Write the numbers of the counted tokens of a block to `r.nodes`; a new token gets the next number."""
    cdef int64_t i, n, total, limit, width = c.width, found = 0
    cdef int64_t* word = r.word + r.carry
    cdef int64_t* nodes = r.nodes
    cdef double* cells
    cdef Piece* pieces = r.pieces
    cdef Word* w
    cdef Gram* g
    cdef bint words = r.rule.words, often = not once, single = r.rule.low == 1 or not words
    k = rewritten(r, k)
    if ready(c, k, 0) < 0:
        return NO_MEMORY
    cells = c.cells
    fetched(r, c, k)
    for i in range(k):
        w = word_of(c, &pieces[i])
        if w == NULL:
            return NO_MEMORY
        word[i] = w.node
        if single:
            soon(cells + w.node * width)
            nodes[found] = w.node
            found += often | (w.mark != document)  # branch-free: repetitions of a word are unpredictable
            w.mark = document
    if r.rule.high == 1 or not words:
        return found
    total = r.carry + k
    memcpy(r.beginning, r.word, total * sizeof(int64_t))
    for n in range(2, r.rule.high + 1):
        limit = total - n + 1
        if limit <= 0:
            break
        if ready(c, 0, limit) < 0:
            return NO_MEMORY
        for i in range(limit):
            soon(gram_home(c, pair(r.beginning[i], r.word[i + n - 1])))
        for i in range(limit):
            g = gram_of(c, r.beginning[i], r.word[i + n - 1])
            r.beginning[i] = g.node
            if n >= r.rule.low and i + n - 1 >= r.carry:
                soon(c.cells + g.node * c.width)
                r.nodes[found] = g.node
                found += often | (g.mark != document)
                g.mark = document
    keep_last(r, total)
    return found


cdef void counted(Reader r, Counter c, int64_t k, int64_t group, double weight) noexcept nogil:
    cdef int64_t i, width = c.width
    cdef double* cells = c.cells + group
    for i in range(k):
        cells[r.nodes[i] * width] += weight


cdef absorb(Counter into, Counter other, keep):
    """Every token of the other, or of those kept, with its counts; what a kept n-gram is made of stays as its bones.

    The answer is the new number of each, -1 for those that are not there.
    """
    cdef int64_t node, n = other.nodes, j, to
    cdef uint64_t key
    cdef Piece piece
    cdef int64_t[::1] where = np.full(n + 1, -1, dtype=np.int64)
    cdef uint8_t[::1] wanted = np.ones(n + 1, dtype=np.uint8) if keep is None else np.append(keep, keep[:1])
    cdef double* cell
    cdef Word* w
    cdef int problem = 0
    with nogil:
        for node in range(n - 1, -1, -1):
            key = other.origin[node]
            if wanted[node] and key & PAIR:
                wanted[beginning_of(key)] |= 2
                wanted[last_of(key)] |= 2
        for node in range(n):
            if node % 1024 == 0:
                problem = ready(into, 1024, 1024)
                if problem < 0:
                    break
            if node + 16 < n:
                key = other.origin[node + 16]
                if not key & PAIR:
                    piece = piece_at(other.arena + (key >> 24), key & LENGTH)
                    soon(&into.words[piece.hash & (into.word_size - 1)])
                elif beginning_of(key) < node and last_of(key) < node:
                    soon(gram_home(into, pair(where[beginning_of(key)], where[last_of(key)])))
            if not wanted[node]:
                continue
            key = other.origin[node]
            if key & PAIR:
                to = gram_of(into, where[beginning_of(key)], where[last_of(key)]).node
            else:
                piece = piece_at(other.arena + (key >> 24), key & LENGTH)
                w = word_of(into, &piece)
                if w == NULL:
                    problem = NO_MEMORY
                    break
                to = w.node
            where[node] = to
            if wanted[node] & 1:
                cell = into.cells + to * into.width
                for j in range(into.width):
                    cell[j] = other.cells[node * other.width + j] + (cell[j] if j < into.groups else 0.0)
    if problem < 0:
        raise MemoryError
    return np.asarray(where)[:n]


cdef void swap(Counter a, Counter b) noexcept:
    a.words, b.words = b.words, a.words
    a.grams, b.grams = b.grams, a.grams
    a.arena, b.arena = b.arena, a.arena
    a.origin, b.origin = b.origin, a.origin
    a.cells, b.cells = b.cells, a.cells
    a.word_size, a.word_used, a.gram_size, a.gram_used = b.word_size, b.word_used, b.gram_size, b.gram_used
    a.arena_used, a.arena_room, a.nodes, a.room = b.arena_used, b.arena_room, b.nodes, b.room
