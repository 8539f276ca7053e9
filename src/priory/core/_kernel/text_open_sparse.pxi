# Mutable counts for many classes: a token has an entry for each class in which it occurs. The entries of a token form a
# linked list, used for scoring; the entry of a token and a class is found by a hash table.

cdef struct ClassCount:
    double count
    int64_t following  # the next entry of the same token; -1 at the end
    int64_t node
    int64_t group


cdef class SparseOpenCounter(OpenCounter):
    cdef int64_t n_classes, used, room_of_counts, heads
    cdef ClassCount* counts
    cdef int64_t* head        # of each node: its first entry, or -1
    cdef int64_t* slots       # a hash table of entries: their numbers plus one
    cdef uint64_t n_slots     # a power of two

    def __init__(self, int64_t n_classes, const uint8_t[::1] arena, const int64_t[::1] ends,
                 const int64_t[::1] entry_ends, const int32_t[::1] classes, const double[::1] values, bint split):
        """Start from these positive counts; the counts of a token end at ``entry_ends``."""
        cdef int64_t i, j, start = 0, n = ends.shape[0]
        cdef ClassCount* entry
        if entry_ends.shape[0] != n or classes.shape[0] != values.shape[0]:
            raise ValueError("one end of entries for each token, and one class for each count")
        if (n and entry_ends[n - 1] != values.shape[0]) or np.any(np.diff(entry_ends, prepend=0) < 0):
            raise ValueError("the entries of the tokens follow one another")
        # A cell is the number of classes in which the token occurs: it is in use while this is positive.
        shown = np.diff(entry_ends, prepend=0).astype(float)[:, None]
        OpenCounter.__init__(self, 1, arena, ends, shown, split)
        self.n_classes, self.totals = n_classes, np.zeros(n_classes)
        self.total = self.totals
        make_room_for_counts(self, values.shape[0])
        cdef int64_t[::1] first = self.first_nodes
        for i in range(n):
            for j in range(start, entry_ends[i]):
                if not 0 <= classes[j] < n_classes:
                    raise ValueError("a class out of range")
                entry = count_of(self, first[i], classes[j], True)
                entry.count += values[j]
                self.total[classes[j]] += values[j]
            start = entry_ends[i]

    def __dealloc__(self):
        free(self.counts)
        free(self.head)
        free(self.slots)

    def learn(self, document, Rule rule, int64_t group, bint once):
        """Add the tokens of a document to the counts of its class."""
        cdef int64_t i, k = entries(self, document, rule, True)
        cdef ClassCount* entry
        cdef double x
        if not 0 <= group < self.n_classes:
            raise ValueError("a class out of range")
        make_room_for_counts(self, k)
        for i in range(k):
            x = 1.0 if once else self.times[i]
            entry = count_of(self, self.found[i], group, True)
            if entry.count == 0:
                self.n_used += self.cells[self.found[i]] == 0
                self.cells[self.found[i]] += 1
            entry.count += x
            self.total[group] += x

    def forget(self, document, Rule rule, int64_t group, bint once):
        """Remove the tokens of a document and return True; return False, changing nothing, if they are not there."""
        cdef int64_t i, k = entries(self, document, rule, False)
        cdef ClassCount* entry
        cdef double x
        if not 0 <= group < self.n_classes:
            raise ValueError("a class out of range")
        if self.unknown:
            return False
        for i in range(k):
            x = 1.0 if once else self.times[i]
            entry = count_of(self, self.found[i], group, False)
            if entry == NULL or subtracted(entry.count, x) < 0:
                return False
        for i in range(k):
            x = 1.0 if once else self.times[i]
            entry = count_of(self, self.found[i], group, False)
            entry.count = subtracted(entry.count, x)
            self.total[group] -= x
            if entry.count == 0:
                self.cells[self.found[i]] -= 1
                self.n_used -= self.cells[self.found[i]] == 0
        return True

    def score(self, document, Rule rule, bint once, double alpha, bint complement):
        """Sum of log(count + alpha) over the tokens in use, (classes,), and the number of tokens in the sum.

        ``complement`` counts what all other classes have together.
        """
        cdef int64_t i, at, k = entries(self, document, rule, False)
        cdef double length = 0.0, common = 0.0, x, whole, empty
        scores = np.zeros(self.n_classes)
        cdef double[::1] sums = scores
        for i in range(k):
            if self.cells[self.found[i]] == 0:
                continue
            x = 1.0 if once else self.times[i]
            length += x
            whole = 0.0
            if complement:
                at = self.head[self.found[i]]
                while at >= 0:
                    whole += self.counts[at].count
                    at = self.counts[at].following
            empty = log(whole + alpha)  # the term of a class without the token
            common += x * empty
            at = self.head[self.found[i]]
            while at >= 0:
                sums[self.counts[at].group] += x * (
                    log((whole - self.counts[at].count if complement else self.counts[at].count) + alpha) - empty
                )
                at = self.counts[at].following
        return scores + common, length


cdef int make_room_for_counts(SparseOpenCounter c, int64_t more) except -1:
    """Reserve memory for more entries, and for the first entry of every node."""
    cdef int64_t room = 2 * (c.used + more) + 16, i
    cdef void* p
    if c.heads < c.room:
        p = realloc(c.head, c.room * sizeof(int64_t))
        if p == NULL:
            raise MemoryError
        c.head = <int64_t*>p
        for i in range(c.heads, c.room):
            c.head[i] = -1
        c.heads = c.room
    if c.used + more <= c.room_of_counts:
        return 0
    p = realloc(c.counts, room * sizeof(ClassCount))
    if p == NULL:
        raise MemoryError
    c.counts = <ClassCount*>p
    spread_slots(c, room)
    c.room_of_counts = room
    return 0


cdef int spread_slots(SparseOpenCounter c, int64_t room) except -1:
    """Resize the hash table to be at most half full with this number of entries."""
    cdef uint64_t size = 16
    cdef int64_t i
    cdef void* p
    while size < <uint64_t>(2 * room):
        size *= 2
    if size == c.n_slots:
        return 0
    p = table(size * sizeof(int64_t))
    if p == NULL:
        raise MemoryError
    free(c.slots)
    c.slots, c.n_slots = <int64_t*>p, size
    for i in range(c.used):
        slot_of(c, c.counts[i].node, c.counts[i].group)[0] = i + 1
    return 0


cdef inline int64_t* slot_of(SparseOpenCounter c, int64_t node, int64_t group) noexcept nogil:
    """The slot of a token and a class: the slot of their entry, or a free one."""
    cdef uint64_t mask = c.n_slots - 1
    cdef uint64_t at = (<uint64_t>node * 0x9E3779B97F4A7C15ULL + <uint64_t>group) * 0xD6E8FEB86659FD93ULL
    at = (at ^ (at >> 32)) & mask
    while c.slots[at] and (c.counts[c.slots[at] - 1].node != node or c.counts[c.slots[at] - 1].group != group):
        at = (at + 1) & mask
    return &c.slots[at]


cdef inline ClassCount* count_of(SparseOpenCounter c, int64_t node, int64_t group, bint grow) noexcept nogil:
    """The entry of a token and a class; NULL if there is none and it is not to be created. Memory must be reserved."""
    cdef int64_t* slot = slot_of(c, node, group)
    cdef ClassCount* entry
    if slot[0] == 0:
        if not grow:
            return NULL
        entry = &c.counts[c.used]
        entry.count, entry.node, entry.group, entry.following = 0.0, node, group, c.head[node]
        c.head[node] = c.used
        c.used += 1
        slot[0] = c.used
    return &c.counts[slot[0] - 1]
