# Split documents into pieces: a document is lower-cased block by block, and words are found in the lower-case bytes.
# ASCII is processed 64 bytes at a time; other scripts character by character, until the next ASCII.


cdef inline bint is_word(uint8_t run) noexcept nogil:
    return run == WORD or run >= LETTER


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
    cdef uint64_t bits, before, begins, ends, high, last = is_word(r.inside), ones = 0, last_one = 0
    cdef uint8_t rest[64]
    cdef bint ascii = True, singles = r.rule.singles
    if r.inside > LETTER or r.inside == SPACELESS:  # a run of another script goes on
        return False
    while base < m:
        step = m - base if m - base < 64 else 64
        if step == 64:
            bits = sixty_four(text + base, low + base, r.rule.lowers, r.rule.joiner, &high)
        else:
            memset(rest, 0, 64)
            memcpy(rest, text + base, step)
            bits = sixty_four(rest, low + base, r.rule.lowers, r.rule.joiner, &high)
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
    r.inside = script_at(r, text, m) if last else SEPARATOR
    if r.places != NULL:
        for i in range(m):
            r.places[r.used + i] = <uint32_t>(r.at + i)
    r.at += m
    r.used += m
    found[0] = k
    return True


cdef uint8_t script_at(Reader r, const uint8_t* text, int64_t end) noexcept nogil:
    """The script of an ASCII word that is cut at a position: Latin if there is a letter after its last joiner."""
    while end > 0:
        end -= 1
        if r.rule.kinds[text[end]] == LETTER:
            return LETTER
        if r.rule.kinds[text[end]] != WORD:
            return WORD
    return r.inside if is_word(r.inside) else WORD


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
    if units == 0:
        r.bad = at
        return 0
    if c[0] >= r.rule.kinds.shape[0]:
        kind[0] = SEPARATOR
        return units
    c[0] = r.rule.lowered[c[0]]
    kind[0] = r.rule.kinds[c[0]]
    return units


cdef inline uint8_t extended(uint8_t run, uint8_t kind) noexcept nogil:
    """The kind of a run after one more character; SEPARATOR if the character does not belong to it."""
    if kind >= LETTER:
        return kind if run == kind or run == WORD else SEPARATOR
    if kind == WORD:
        return run if is_word(run) else SEPARATOR
    if kind == MARK:
        return run if is_word(run) or run == SPACELESS else SEPARATOR
    if kind == JOINER:
        return WORD if is_word(run) else SEPARATOR
    return SPACELESS if kind == SPACELESS and run == SPACELESS else SEPARATOR


cdef struct Run:
    uint8_t kind
    bint counted                        # its first word, or character, was counted with the previous block
    int64_t start, from_, length        # of the word, or of the last character with its marks: in `low`, in the document
    int64_t previous, previous_from     # of the character before the last; -1 if there is none


cdef inline int64_t ended(Reader r, Run* run, int64_t o, int64_t k) noexcept nogil:
    """Add the pieces of the word, or of the last character of a run; both end at `o`."""
    if run.kind == SPACELESS:
        if run.previous >= 0:
            r.pieces[k].at, r.pieces[k].n = r.low + run.previous, o - run.previous
            k += 1
    elif not is_word(run.kind) or run.length < r.rule.least:
        return k
    r.pieces[k].at, r.pieces[k].n = r.low + run.start, o - run.start
    return k + (not run.counted)


cdef int64_t wide(Reader r, Document* d, int64_t end, int64_t k) noexcept nogil:
    """Process any script; stops at the next separator if ASCII is likely to follow."""
    cdef int64_t at = r.at, o = r.used, enough_ = r.at + 32 if d.width <= 1 else end, units
    cdef uint8_t kind, longer
    cdef uint32_t c
    cdef Run run
    run.kind, run.counted = r.inside, r.inside != SEPARATOR
    run.start, run.from_, run.length, run.previous, run.previous_from = o, at, 0, -1, -1
    r.inside = SEPARATOR
    while at < end:
        units = folded_at(r, d, at, &c, &kind)
        if units == 0:
            return MALFORMED
        longer = extended(run.kind, kind)
        if longer == SEPARATOR or (longer == SPACELESS and run.length > 0
                                   and (kind != MARK or run.length >= LONGEST_CLUSTER)):
            k = ended(r, &run, o, k)
            run.previous = run.start if longer else -1
            run.previous_from = run.from_
            run.start, run.from_, run.length, run.counted = o, at, 0, False
            longer = longer if longer else (WORD if kind == MARK or kind == JOINER else kind)
        run.kind = longer
        if run.length < LONGEST and (is_word(longer) or longer == SPACELESS or longer == SINGLE):
            if r.places != NULL:
                r.places[o] = <uint32_t>at
            o += encoded(c, r.low + o)
            run.length += 1
        if longer == SINGLE:
            r.pieces[k].at, r.pieces[k].n = r.low + run.start, o - run.start
            k += 1
        at += units
        if at >= enough_ and (kind == SEPARATOR or kind == SPACE):
            break
    r.used = o
    if at >= d.n:
        k = ended(r, &run, o, k)
    elif is_word(run.kind) and run.from_ > r.at:
        at = run.from_  # begin the next block with it
    elif is_word(run.kind):
        k = ended(r, &run, o, k)
        r.inside = run.kind
    elif run.kind == SPACELESS:  # begin the next block with the character whose pair is not complete
        r.inside = SPACELESS if run.previous >= 0 or run.counted else SEPARATOR
        at = run.previous_from if run.previous >= 0 else run.from_
    r.at = at
    return k


def find_pieces(str document, Rule rule):
    """The pieces of a document in lower case, before stop words and stems, with their start and end in the document."""
    cdef Reader r = Reader(rule, [document])
    cdef Document* d = &r.documents[0]
    cdef int64_t k = 0, i, first, last, room = 6 * (2 * d.n + 64) + 4 * BLOCK + PAD
    r.places = <uint32_t*>zeros(room * sizeof(uint32_t))
    if r.places == NULL:
        raise MemoryError
    pieces = []
    opened(r)
    while r.at < d.n:
        k = block(r, d)
        for i in range(k):
            first = r.pieces[i].at - r.low
            last = first + r.pieces[i].n - 1
            while last > first and r.low[last] & 0xC0 == 0x80:  # the first byte of the last character
                last -= 1
            word = (<const char*>r.pieces[i].at)[:r.pieces[i].n].decode()
            pieces.append((word, r.places[first], r.places[last] + 1))
        if k < 0:
            break
    raised(r, k, 0)
    return pieces
