# Whether tokens differ: a hash of each, dealt into piles that fit the cache, and each pile looked through.

cdef enum:
    PILE = 4096  # hashes


def distinct(const uint8_t[::1] arena, const int64_t[::1] ends):
    """Whether the tokens are one after the other, fill the arena, and no token is there twice."""
    cdef int64_t i, n = ends.shape[0], start = 0, cut = 0, size = 2, shift = 64
    cdef bint differ = True
    with nogil:
        for i in range(n):
            differ = differ and start < ends[i] <= arena.shape[0] and ends[i] - start < LENGTH
            start = ends[i]
    if not differ or start != arena.shape[0]:
        return False
    if n < 2:
        return True
    cdef uint64_t[::1] hashes = np.empty(n, dtype=np.uint64), dealt = np.empty(n, dtype=np.uint64)
    while shift > 44 and n >> (64 - shift) > PILE:
        shift -= 1
    cdef int64_t piles = <int64_t>1 << (64 - shift), k, most = 0
    cdef int64_t[::1] stops = np.zeros(piles + 1, dtype=np.int64)
    with nogil:
        while cut < n and ends[cut] + PAD <= arena.shape[0]:
            cut += 1
    start = ends[cut - 1] if cut else 0
    cdef uint8_t[::1] tail = np.zeros(arena.shape[0] - start + PAD, dtype=np.uint8)  # sixteen bytes are read at once
    tail[: arena.shape[0] - start] = arena[start:]
    with nogil:
        hashes_of(&arena[0], &ends[0], 0, cut, 0, &hashes[0])
        hashes_of(&tail[0], &ends[0], cut, n, start, &hashes[0])
        for i in range(n):
            stops[pile_of(hashes[i], shift) + 1] += 1
        for k in range(piles):
            most = stops[k + 1] if stops[k + 1] > most else most
            stops[k + 1] += stops[k]
        for i in range(n):
            k = pile_of(hashes[i], shift)
            dealt[stops[k]] = hashes[i]
            stops[k] += 1
        while size < 2 * most:
            size *= 2
    cdef uint64_t[::1] slots = np.empty(size, dtype=np.uint64)
    with nogil:
        start = 0
        for k in range(piles):
            if not all_differ(&dealt[0] + start, stops[k] - start, &slots[0], size):
                differ = False
                break
            start = stops[k]
    return differ or _reference.distinct(np.asarray(arena), np.asarray(ends))  # hashes may agree where tokens do not


cdef inline int64_t pile_of(uint64_t hash, int64_t shift) noexcept nogil:
    return <int64_t>(hash >> shift) if shift < 64 else 0


cdef void hashes_of(
    const uint8_t* arena, const int64_t* ends, int64_t i, int64_t stop, int64_t origin, uint64_t* out
) noexcept nogil:
    """A hash that is not nought for each of some tokens; the arena begins at ``origin``."""
    cdef int64_t start = ends[i - 1] if i else 0
    while i < stop:
        out[i] = piece_at(arena + start - origin, ends[i] - start).hash | 1
        start = ends[i]
        i += 1


cdef bint all_differ(const uint64_t* hashes, int64_t n, uint64_t* slots, int64_t size) noexcept nogil:
    cdef uint64_t mask = size - 1, at
    cdef int64_t i
    memset(slots, 0, size * sizeof(uint64_t))
    for i in range(n):
        at = hashes[i] >> 1 & mask
        while slots[at] != 0:
            if slots[at] == hashes[i]:
                return False
            at = (at + 1) & mask
        slots[at] = hashes[i]
    return True
