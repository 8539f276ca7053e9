# Canonical order of tokens without comparing n-grams: the space sorts before every byte of a word, so that "a b" comes
# after "a" and before all longer words that begin with "a", and n-grams with one beginning sort as their last words.

cdef struct Spelling:
    uint64_t head  # the first eight bytes as a big-endian number
    const uint8_t* at
    uint64_t n
    int64_t node


cdef int compared(const void* a, const void* b) noexcept nogil:
    cdef const Spelling* x = <const Spelling*>a
    cdef const Spelling* y = <const Spelling*>b
    cdef uint64_t shorter
    cdef int difference
    if x.head != y.head:
        return -1 if x.head < y.head else 1
    shorter = x.n if x.n < y.n else y.n
    if shorter > 8:
        difference = memcmp(x.at + 8, y.at + 8, shorter - 8)
        if difference:
            return difference
    if x.n != y.n:
        return 1 if x.n > y.n else -1
    return (x.node > y.node) - (x.node < y.node)


cdef inline uint64_t head_of(const uint8_t* at, uint64_t n) noexcept nogil:
    cdef uint64_t head = 0, i
    for i in range(8):
        head = head << 8 | (at[i] if i < n else 0)
    return head


def sort_tokens(const uint8_t[::1] arena, const int64_t[::1] ends):
    """Numbers that sort the tokens by their bytes."""
    cdef int64_t n = ends.shape[0], i, start = 0
    cdef int64_t[::1] order = np.empty(n, dtype=np.int64)
    cdef Spelling* spellings = <Spelling*>zeros((n + 1) * sizeof(Spelling))
    if spellings == NULL:
        raise MemoryError
    with nogil:
        for i in range(n):
            spellings[i].at, spellings[i].n, spellings[i].node = &arena[0] + start, ends[i] - start, i
            spellings[i].head = head_of(spellings[i].at, spellings[i].n)
            start = ends[i]
        qsort(spellings, n, sizeof(Spelling), compared)
        for i in range(n):
            order[i] = spellings[i].node
    free(spellings)
    return np.asarray(order)


def are_tokens_sorted(const uint8_t[::1] arena, const int64_t[::1] ends):
    """Whether the tokens are strictly increasing by their bytes."""
    cdef int64_t n = ends.shape[0], i, start = 0
    cdef Spelling one, other
    cdef bint rises = True
    with nogil:
        for i in range(n):
            other.at, other.n, other.node = &arena[0] + start, ends[i] - start, 0
            other.head = head_of(other.at, other.n)
            rises = i == 0 or compared(&one, &other) < 0
            if not rises:
                break
            one = other
            start = ends[i]
    return rises


cdef object sorted_nodes(Counter c):
    """The numbers of all tokens in canonical order: words are sorted, n-grams are placed by counting."""
    cdef int64_t n = c.nodes, node, words = 0, i, level, highest = 1, position = 0, size
    cdef uint64_t key
    cdef Spelling* spellings = <Spelling*>zeros((n + 1) * sizeof(Spelling))
    cdef uint8_t[::1] levels = np.ones(n + 1, dtype=np.uint8)
    cdef int64_t[::1] order = np.empty(n, dtype=np.int64)
    # of each node: how many tokens begin with it, where it stands, and the place of the next n-gram that begins with it
    cdef int32_t[::1] sizes = np.ones(n + 1, dtype=np.int32), rank = np.zeros(n + 1, dtype=np.int32)
    cdef int64_t[::1] place = np.zeros(n + 1, dtype=np.int64)
    if spellings == NULL:
        raise MemoryError
    with nogil:
        for node in range(n):
            key = c.origin[node]
            if key & PAIR:
                levels[node] = levels[beginning_of(key)] + 1
                highest = highest if highest > levels[node] else levels[node]
            else:
                spellings[words].at, spellings[words].n = c.arena + (key >> 24), key & LENGTH
                spellings[words].head = head_of(spellings[words].at, spellings[words].n)
                spellings[words].node = node
                words += 1
        qsort(spellings, words, sizeof(Spelling), compared)
        for i in range(words):
            rank[spellings[i].node] = <int32_t>i
        for node in range(n - 1, -1, -1):  # a beginning comes before what begins with it
            key = c.origin[node]
            if key & PAIR:
                sizes[beginning_of(key)] += sizes[node]
        for i in range(words):
            node = spellings[i].node
            order[position] = node
            place[node] = position + 1
            position += sizes[node]
    free(spellings)
    for level in range(2, highest + 1):
        grams = np.flatnonzero(np.asarray(levels)[:n] == level)
        placed(c, grams, rank, sizes, place, order, words)
    return np.asarray(order)


cdef placed(Counter c, int64_t[::1] grams, int32_t[::1] rank, int32_t[::1] sizes, int64_t[::1] place,
            int64_t[::1] order, int64_t words):
    """Put n-grams of one length behind their beginnings, in the order of their last words."""
    cdef int64_t n = grams.shape[0], i, node, parent, at
    cdef int64_t[::1] starts = np.zeros(words + 2, dtype=np.int64), sorted_ = np.empty(n, dtype=np.int64)
    with nogil:
        for i in range(n):
            starts[rank[last_of(c.origin[grams[i]])] + 1] += 1
        for i in range(words):
            starts[i + 1] += starts[i]
        for i in range(n):
            at = rank[last_of(c.origin[grams[i]])]
            sorted_[starts[at]] = grams[i]
            starts[at] += 1
        for i in range(n):
            node = sorted_[i]
            parent = beginning_of(c.origin[node])
            at = place[parent]
            order[at] = node
            place[node] = at + 1
            place[parent] = at + sizes[node]


def gather_tokens(const uint8_t[::1] arena, const int64_t[::1] ends, const int64_t[::1] numbers):
    """The tokens with these numbers, in the order given: arena and ends."""
    cdef int64_t n = numbers.shape[0], i, start, total = 0, length
    cdef int64_t[::1] stops = np.empty(n, dtype=np.int64)
    for i in range(n):
        if not 0 <= numbers[i] < ends.shape[0]:
            raise ValueError("a token that is not there")
    with nogil:
        for i in range(n):
            start = ends[numbers[i] - 1] if numbers[i] else 0
            total += ends[numbers[i]] - start
            stops[i] = total
    if total < 0:
        raise ValueError("tokens do not follow one another")
    cdef uint8_t[::1] gathered = np.empty(total, dtype=np.uint8)
    with nogil:
        total = 0
        for i in range(n):
            start = ends[numbers[i] - 1] if numbers[i] else 0
            length = stops[i] - total
            if length > 0 and start >= 0 and start + length <= arena.shape[0]:
                memcpy(&gathered[total], &arena[start], length)
            total = stops[i]
    return np.asarray(gathered), np.asarray(stops)
