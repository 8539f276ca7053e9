# Check that tokens are distinct: hash each, distribute the hashes to piles that fit into the cache, and search each pile.

cdef enum:
    PILE = 4096  # approximate number of hashes


def are_tokens_distinct(const uint8_t[::1] arena, const int64_t[::1] ends):
    """Whether tokens are contiguous, start at character boundaries, and are distinct."""
    cdef int64_t n = ends.shape[0], size = arena.shape[0], start, k, mean, room = 64
    cdef Piles piles
    if n == 0 or ends[n - 1] != size:
        return n == 0 and size == 0
    piles.shift = 63
    while piles.shift > 32 and n >> (64 - piles.shift) > PILE:
        piles.shift -= 1
    mean = n >> (64 - piles.shift)
    piles.room = mean + mean // 4 + 64  # more than eight standard deviations above the mean
    piles.full = False
    cdef int64_t count = <int64_t>1 << (64 - piles.shift)
    cdef int64_t[::1] sizes = np.zeros(count, dtype=np.int64)
    cdef uint64_t[::1] hashes = np.empty(count * piles.room, dtype=np.uint64)
    piles.sizes, piles.hashes = &sizes[0], &hashes[0]
    with nogil:
        k = dealt(&piles, &arena[0], &ends[0], 0, n, 0, size - PAD)
    start = ends[k - 1] if k else 0
    cdef uint8_t[::1] tail = np.zeros(size - start + PAD, dtype=np.uint8)  # padded, because sixteen bytes are read at once
    tail[: size - start] = arena[start:]
    if dealt(&piles, &tail[0], &ends[0], k, n, start, size) < n:
        return False
    while room < 2 * piles.room:
        room *= 2
    cdef uint64_t[::1] slots = np.empty(room, dtype=np.uint64)
    cdef bint differ = not piles.full
    with nogil:
        for k in range(count):
            differ = differ and all_differ(piles.hashes + k * piles.room, piles.sizes[k], &slots[0], room)
    if not differ:  # different tokens may have equal hashes
        text, stops = bytes(arena), np.asarray(ends).tolist()
        differ = len({text[a:b] for a, b in zip([0, *stops], stops)}) == n
    return differ


cdef struct Piles:
    uint64_t* hashes
    int64_t* sizes
    int64_t room  # of each
    int shift
    bint full


cdef int64_t dealt(
    Piles* piles, const uint8_t* arena, const int64_t* ends, int64_t i, int64_t n, int64_t origin, int64_t last
) noexcept nogil:
    """Distribute the hashes of the tokens from ``i`` on to piles by their high bits; none is zero. The arena begins at ``origin``.

    Returns the first token that is empty, too long, begins inside a character, or ends after ``last``.
    """
    cdef int64_t start = ends[i - 1] if i else 0, room = piles.room, shift = piles.shift, k, at
    cdef int64_t* sizes = piles.sizes
    cdef uint64_t* hashes = piles.hashes
    cdef Seeds seeds = SEEDS
    cdef Piece piece
    while i < n and start < ends[i] <= last and ends[i] - start < LENGTH:
        piece.at, piece.n = arena + start - origin, ends[i] - start
        if unlikely(piece.at[0] & 0xC0 == 0x80):
            break
        hashed(&piece, &seeds)
        k = piece.hash >> shift
        at = sizes[k]
        if unlikely(at == room):
            piles.full = True
            at -= 1
        hashes[k * room + at] = piece.hash | 1
        sizes[k] = at + 1
        start = ends[i]
        i += 1
    return i


cdef bint all_differ(const uint64_t* hashes, int64_t n, uint64_t* slots, int64_t room) noexcept nogil:
    cdef uint64_t mask = room - 1, hash, at
    cdef int64_t i
    memset(slots, 0, room * sizeof(uint64_t))
    for i in range(n):
        hash = hashes[i]
        at = hash >> 1 & mask
        while slots[at] != 0:
            if slots[at] == hash:
                return False
            at = (at + 1) & mask
        slots[at] = hash
    return True
