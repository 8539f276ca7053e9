# Feature hashing into a fixed number of buckets: tables do not grow, and counts merge by addition. The hash depends only
# on the salt, so it is the same in every process.


cdef enum:
    AHEAD = 16  # tokens whose cells are fetched in advance


cdef class TokenHasher:
    cdef Seeds seeds
    cdef int64_t size
    cdef uint64_t mask  # of a power of two, whose remainder is a mask; otherwise zero

    def __init__(self, int64_t size, uint64_t salt):
        self.size, self.seeds = size, seeds_from(salt)
        self.mask = size - 1 if size & (size - 1) == 0 else 0
        if size < 1:
            raise ValueError("at least one bucket")

    def count(self, documents, Rule rule, const int32_t[::1] group, const double[::1] weight, int64_t groups,
              bint once):
        """Counts of each bucket in each class."""
        cdef Reader r = Reader(rule, documents)
        cdef int64_t i = 0, j, k = 0, node
        cdef double[:, ::1] counts = np.zeros((self.size, groups))
        cdef int32_t[::1] mark = np.zeros(self.size if once else 1, dtype=np.int32)
        cdef double w
        if group.shape[0] != r.count or (weight is not None and weight.shape[0] != r.count):
            raise ValueError("one class and one weight for each document")
        for i in range(r.count):
            if not 0 <= group[i] < groups:
                raise ValueError("a class out of range")
        with nogil:
            for i in range(r.count):
                opened(r)
                w = 1.0 if weight is None else weight[i]
                while r.at < r.documents[i].n:
                    k = block(r, &r.documents[i])
                    if k < 0:
                        break
                    k = bucketed(r, self, k)
                    for j in range(k):
                        if j + AHEAD < k:
                            soon(&counts[r.nodes[j + AHEAD], group[i]])
                            soon(&mark[r.nodes[j + AHEAD] if once else 0])
                        node = r.nodes[j]
                        if once:
                            if mark[node] == i + 1:
                                continue
                            mark[node] = <int32_t>(i + 1)
                        counts[node, group[i]] += w
                if k < 0:
                    break
        raised(r, k, i)
        return np.asarray(counts)

    def score(self, documents, Rule rule, const double[:, ::1] table, bint once):
        """Sum of the table's rows over the buckets of each document."""
        cdef Reader r = Reader(rule, documents)
        cdef int64_t i = 0, j, k = 0, c, node, groups = table.shape[1]
        cdef double[:, ::1] scores = np.zeros((r.count, groups))
        cdef int32_t[::1] mark = np.zeros(self.size if once else 1, dtype=np.int32)
        if table.shape[0] != self.size:
            raise ValueError("one row of the table for each bucket")
        with nogil:
            for i in range(r.count):
                opened(r)
                while r.at < r.documents[i].n:
                    k = block(r, &r.documents[i])
                    if k < 0:
                        break
                    k = bucketed(r, self, k)
                    for j in range(k):
                        if j + AHEAD < k:
                            soon(&table[r.nodes[j + AHEAD], 0])
                            soon(&mark[r.nodes[j + AHEAD] if once else 0])
                        node = r.nodes[j]
                        if once:
                            if mark[node] == i + 1:
                                continue
                            mark[node] = <int32_t>(i + 1)
                        for c in range(groups):
                            scores[i, c] += table[node, c]
                if k < 0:
                    break
        raised(r, k, i)
        return np.asarray(scores)

    def encode(self, documents, Rule rule):
        """Rows of (bucket, count), sorted by bucket: row pointers, buckets, and counts."""
        cdef Reader r = Reader(rule, documents)
        cdef int64_t i = 0, j, k = 0, used = 0, found, room = 1024, document_room = 1024
        cdef int64_t[::1] ends = np.zeros(r.count + 1, dtype=np.int64)
        cdef int64_t[::1] own = np.empty(document_room, dtype=np.int64), more = np.empty(document_room, dtype=np.int64)
        buckets, counts = np.empty(room, dtype=np.int64), np.empty(room)
        cdef int64_t[::1] bucket = buckets
        cdef double[::1] count = counts
        with nogil:
            for i in range(r.count):
                opened(r)
                found = 0  # the buckets of the document's tokens, in `own`
                while r.at < r.documents[i].n:
                    k = block(r, &r.documents[i])
                    if k < 0:
                        break
                    k = bucketed(r, self, k)
                    if found + k > document_room:
                        document_room = 2 * (found + k)
                        with gil:
                            own, more = grown(np.asarray(own), document_room), np.empty(document_room, dtype=np.int64)
                    memcpy(&own[found], r.nodes, k * sizeof(int64_t))
                    found += k
                if k < 0:
                    break
                if used + found > room:
                    room = 2 * (used + found)
                    with gil:
                        buckets, counts = grown(buckets, room), grown(counts, room)
                        bucket, count = buckets, counts
                sort_numbers(&own[0], NULL, found, &more[0], NULL)
                for j in range(found):
                    if j == 0 or own[j] != own[j - 1]:
                        bucket[used], count[used] = own[j], 0.0
                        used += 1
                    count[used - 1] += 1.0
                ends[i + 1] = used
        raised(r, k, i)
        return np.asarray(ends), buckets[:used].copy(), counts[:used].copy()


cdef int64_t bucketed(Reader r, TokenHasher b, int64_t k) noexcept nogil:
    """Write the buckets of all tokens of a block to `r.nodes`; an n-gram is hashed from its beginning and its last word."""
    cdef int64_t i, n, total, found = 0
    cdef uint64_t h
    k = rewritten(r, k)
    for i in range(k):
        hashed(&r.pieces[i], &b.seeds)
        h = r.pieces[i].hash
        r.word[r.carry + i] = <int64_t>h
        if r.rule.low == 1 or not r.rule.words:
            r.nodes[found] = <int64_t>(h & b.mask if b.mask else h % <uint64_t>b.size)
            found += 1
    if r.rule.high == 1 or not r.rule.words:
        return found
    total = r.carry + k
    memcpy(r.hashes, r.word, total * sizeof(int64_t))
    for n in range(2, r.rule.high + 1):
        for i in range(total - n + 1):
            r.hashes[i] = joined(r.hashes[i], <uint64_t>r.word[i + n - 1], &b.seeds)
            if n >= r.rule.low and i + n - 1 >= r.carry:
                h = r.hashes[i]
                r.nodes[found] = <int64_t>(h & b.mask if b.mask else h % <uint64_t>b.size)
                found += 1
    keep_last(r, total)
    return found
