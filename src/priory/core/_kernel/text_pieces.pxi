# Split documents into pieces: a document is lower-cased block by block, and words are found in the lower-case bytes.
# ASCII is processed 64 bytes at a time; other scripts character by character, until the next ASCII.


cdef int64_t block(Reader r, Document* d) noexcept nogil:
    """Find the pieces of the next block of the document, or an error in it; advances `r.at`."""
    cdef int64_t end = r.at + BLOCK, k = 0
    cdef bint ascii = d.width <= 1
    if not r.rule.words:
        return characters(r, d)
    r.used = 0
    end = end if end < d.n else d.n
    # Stop while a word that fills the rest would exceed the maximum length: a word cut here is truncated anyway.
    while k >= 0 and (end - r.at > 4 * LONGEST or r.at < end == d.n):
        if not (ascii and plain(r, d, end, &k)):
            k = wide(r, d, end, k)
    return k


cdef bint plain(Reader r, Document* d, int64_t end, int64_t* found) noexcept nogil:
    """Process the next run of ASCII, 64 bytes at a time, with bit masks of word boundaries. False if there is none."""
    cdef int64_t m = end - r.at, base = 0, k = found[0], i, step, length
    cdef int64_t longest = LONGEST
    cdef int64_t start = m  # of the piece that ends next; beyond its end if it was counted with the previous block
    cdef const uint8_t* text = d.data + r.at
    cdef const uint16_t* shortest = r.rule.shortest
    cdef uint8_t* low = r.low + r.used
    cdef Piece* pieces = r.pieces
    cdef uint64_t bits, before, begins, ends, high, last = r.inside == WORD, ones = 0, last_one = 0
    cdef uint8_t rest[64]
    cdef bint ascii = True, singles = r.rule.singles
    while base < m:
        step = m - base if m - base < 64 else 64
        if step == 64:
            bits = sixty_four(text + base, low + base, r.rule.lowers, &high)
        else:
            memset(rest, 0, 64)
            memcpy(rest, text + base, step)
            bits = sixty_four(rest, low + base, r.rule.lowers, &high)
        if high:
            m, ascii = base, False
            break
        if singles:
            ones = 0
            for i in range(step):
                ones |= <uint64_t>r.rule.single[text[base + i]] << i
            bits &= ~ones
        before = bits << 1 | last
        begins = bits & ~before | ones
        ends = (before & ~bits | ones << 1 | last_one) & ~<uint64_t>0 >> (64 - step)
        if not last | last_one:
            start = base + lowest(begins)
            begins &= begins - 1
        last, last_one = bits >> (step - 1) & 1, ones >> (step - 1) & 1
        while ends:
            length = base + lowest(ends) - start
            pieces[k].at = low + start
            pieces[k].n = length if length < longest else longest
            k += length >= shortest[text[start]]
            ends &= ends - 1
            start = base + lowest(begins)
            begins &= begins - 1
        base += step
    if m == 0:
        return False
    if last and 0 < start < m and r.at + m < d.n:  # it may continue: begin the next block with it
        m, last = start, 0
    elif last and not ascii:
        return False
    elif last | last_one:
        length = m - start
        pieces[k].at = low + start
        pieces[k].n = length if length < longest else longest
        k += length >= shortest[text[start]]
    r.inside = WORD if last else SEPARATOR
    r.at += m
    r.used += m
    found[0] = k
    return True


cdef inline bint surrogate(uint32_t c) noexcept nogil:
    return 0xD800 <= c < 0xE000


cdef int64_t code_point(Document* d, int64_t at, uint32_t* c) noexcept nogil:
    """The character at a position, and the number of units that it takes; 0 if it is invalid."""
    cdef const uint8_t* p = d.data + at
    cdef int64_t more, i
    if d.width == 1:
        c[0] = p[0]
        return 1
    if d.width == 2:
        c[0] = (<const uint16_t*>d.data)[at]
        return not surrogate(c[0])
    if d.width == 4:
        c[0] = (<const uint32_t*>d.data)[at]
        return not surrogate(c[0]) and c[0] <= 0x10FFFF
    if p[0] < 0x80:
        c[0] = p[0]
        return 1
    more = 1 if 0xC2 <= p[0] < 0xE0 else (2 if 0xE0 <= p[0] < 0xF0 else (3 if 0xF0 <= p[0] < 0xF5 else 0))
    if more == 0 or at + more >= d.n:
        return 0
    c[0] = p[0] & (0x3F >> more)
    for i in range(1, more + 1):
        if p[i] & 0xC0 != 0x80:
            return 0
        c[0] = c[0] << 6 | p[i] & 0x3F
    if (more == 2 and c[0] < 0x800) or (more == 3 and (c[0] < 0x10000 or c[0] > 0x10FFFF)) or surrogate(c[0]):
        return 0
    return more + 1


cdef inline int encoded(uint32_t c, uint8_t* out) noexcept nogil:
    if c < 0x80:
        out[0] = c
        return 1
    if c < 0x800:
        out[0], out[1] = 0xC0 | c >> 6, 0x80 | c & 0x3F
        return 2
    if c < 0x10000:
        out[0], out[1], out[2] = 0xE0 | c >> 12, 0x80 | c >> 6 & 0x3F, 0x80 | c & 0x3F
        return 3
    out[0], out[1], out[2], out[3] = 0xF0 | c >> 18, 0x80 | c >> 12 & 0x3F, 0x80 | c >> 6 & 0x3F, 0x80 | c & 0x3F
    return 4


cdef inline int64_t folded_at(Reader r, Document* d, int64_t at, uint32_t* c, uint8_t* kind) noexcept nogil:
    """A character in lower case and its kind; 0, with the position in `r.bad`, if it is invalid."""
    cdef int64_t units = code_point(d, at, c)
    if units == 0 or c[0] >= r.rule.kinds.shape[0]:
        r.bad = at
        return 0
    c[0] = r.rule.lowered[c[0]]
    kind[0] = r.rule.kinds[c[0]]
    return units


cdef int64_t wide(Reader r, Document* d, int64_t end, int64_t k) noexcept nogil:
    """Process any script; stops at the next separator if ASCII is likely to follow."""
    cdef int64_t at = r.at, enough_ = r.at + 32 if d.width <= 1 else end
    cdef int64_t o = r.used, start = o, from_ = 0, previous = 0, previous_from = 0, length = 0, units
    cdef bint skipped = False
    cdef uint8_t kind, run = SEPARATOR, goes_on = r.inside
    cdef uint32_t c
    r.inside = SEPARATOR
    while at < end:
        units = folded_at(r, d, at, &c, &kind)
        if units == 0:
            return MALFORMED
        if kind != run or kind == SINGLE:
            k += not skipped and ((run == WORD and length >= r.rule.least) or (run == SCRIPT and length == 1))
            skipped = kind == goes_on and at == r.at
            run, start, from_, length = kind, o, at, 0
            r.pieces[k].at = r.low + o
        if kind == SCRIPT:
            if length > 0:
                r.pieces[k].at = r.low + previous
                r.pieces[k].n = o - previous + encoded(c, r.low + o)
                k += 1
            previous, previous_from = o, at
            o += encoded(c, r.low + o)
            r.pieces[k].at, r.pieces[k].n = r.low + previous, o - previous
            length += 1
        elif kind == WORD and length < LONGEST:
            o += encoded(c, r.low + o)
            r.pieces[k].n = o - start
            length += 1
        elif kind == SINGLE:
            o += encoded(c, r.low + o)
            r.pieces[k].n = o - start
            k += 1
            run = SEPARATOR
        at += units
        if at >= enough_ and (kind == SEPARATOR or kind == SPACE):
            break
    r.used = o
    if at >= d.n:
        k += not skipped and ((run == WORD and length >= r.rule.least) or (run == SCRIPT and length == 1))
    elif run == WORD and from_ > r.at:
        at = from_
    elif run == WORD:
        k += not skipped and length >= r.rule.least
        r.inside = WORD
    elif run == SCRIPT:
        at = previous_from
        r.inside = SCRIPT if length > 1 else SEPARATOR
    r.at = at
    return k
