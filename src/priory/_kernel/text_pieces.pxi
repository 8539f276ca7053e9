# Documents in, pieces out: a document is folded to lower case block by block, and its words, or runs of characters, are
# found in the folded bytes. Nothing is allocated per word, and the memory does not depend on the length of a word.

cdef enum:
    SEPARATOR = 0
    WORD = 1
    SINGLE = 2  # a token of its own, such as "!"
    SCRIPT = 3  # a script written without spaces: its runs become pairs of characters
    SPACE = 4
    BLOCK = 16384

cdef int64_t LONGEST = _reference.LONGEST

cdef struct Document:
    const uint8_t* data
    int64_t n
    int width  # bytes of a character; nought for UTF-8

cdef struct Piece:
    const uint8_t* at
    uint64_t n, hash


cdef class Rule:
    """The declared tokenizer, as tables: what each code point is, and what it is in lower case."""
    cdef public object unit, rewrites
    cdef int64_t least, low, high
    cdef uint8_t kind[128]
    cdef uint8_t word[256]
    cdef uint8_t single[256]
    cdef bint lowers, singles, words, padded
    cdef const uint8_t[::1] kinds
    cdef const uint32_t[::1] lowered
    cdef Rewrites known

    def __init__(self, unit, least, ngrams, kinds, lowered, rewrites=None):
        cdef int c
        self.unit, self.rewrites, self.least, (self.low, self.high) = unit, rewrites, least, ngrams
        self.words, self.padded = unit == "word", unit == "char_wb"
        self.kinds, self.lowered, self.lowers = kinds, lowered, lowered[65] == 97
        if self.kinds.shape[0] < 128 or self.lowered.shape[0] != self.kinds.shape[0]:
            raise ValueError("a rule needs the kind and the lower case of every code point")
        for c in range(128):
            self.kind[c] = self.kinds[c]
            self.word[c], self.single[c] = self.kinds[c] == WORD, self.kinds[c] == SINGLE
            self.word[c + 128] = self.single[c + 128] = 0
            self.singles |= self.single[c]
        self.known = Rewrites(rewrites) if rewrites else None


@cython.final
cdef class Rewrites(Trie):
    """Words that are replaced before they count (a stem), or left out (a stop word)."""
    cdef Piece* into
    cdef bytes texts

    def __init__(self, rewrites):
        cdef bytes word, text, padded
        cdef Word* w
        cdef uint64_t start
        self.into = <Piece*>zeros(max(len(rewrites), 1) * sizeof(Piece))
        if self.into == NULL or make_room(self, 2 * len(rewrites), 0) < 0:
            raise MemoryError
        starts = []
        for surface, target in rewrites.items():
            word, text = surface.encode(), (target or "").encode()
            if 0 < len(word) < <int64_t>LENGTH:
                padded = word + bytes(PAD)
                w = word_slot(self, padded, len(word), hash_of(padded, len(word), &SEEDS))
                if w.place == 0 and put_word(self, w, padded, len(word), len(starts)) < 0:
                    raise MemoryError
                starts.append(text)
        self.texts, start = b"".join([text + bytes(PAD) for text in starts]), 0
        for i, text in enumerate(starts):
            self.into[i].at = <const uint8_t*>self.texts + start
            self.into[i].n = len(text)
            start += len(text) + PAD
            self.into[i].hash = hash_of(self.into[i].at, self.into[i].n, &SEEDS)

    def __dealloc__(self):
        free(self.into)


cdef class Reader:
    """The scratch of one pass: the folded bytes of a block, its pieces, and the numbers of its tokens."""
    cdef Rule rule
    cdef Rewrites known
    cdef uint8_t* low
    cdef uint32_t* bounds
    cdef uint32_t* starts       # of the characters in `low`, for n-grams of characters
    cdef uint32_t* stops        # where each run of characters ends
    cdef Piece* pieces
    cdef int64_t* word          # numbers of the words, the last few of the block before in front
    cdef int64_t* beginning
    cdef uint64_t* hashes
    cdef int64_t* nodes
    cdef int64_t starts_room
    cdef Document* documents
    cdef object kept
    cdef int64_t count, at, used, carry, bad
    cdef uint8_t inside         # a run of this kind goes on from the block before
    cdef int64_t runs, run, first, gram

    def __cinit__(self, Rule rule, list documents):
        cdef int64_t i
        cdef Document* d
        if rule.high > 64:
            raise ValueError("n-grams of more than 64 words")
        self.rule, self.known, self.kept, self.count = rule, rule.known, documents, len(documents)
        self.low = <uint8_t*>zeros(4 * BLOCK + 64 + PAD)
        self.bounds = <uint32_t*>zeros((BLOCK + 2) * sizeof(uint32_t))
        self.pieces = <Piece*>zeros((BLOCK + 2) * sizeof(Piece))
        self.word = <int64_t*>zeros((BLOCK + 80) * sizeof(int64_t))
        self.beginning = <int64_t*>zeros((BLOCK + 80) * sizeof(int64_t))
        self.hashes = <uint64_t*>zeros((BLOCK + 80) * sizeof(uint64_t))
        self.nodes = <int64_t*>zeros((BLOCK + 80) * rule.high * sizeof(int64_t))
        self.documents = <Document*>zeros((self.count + 1) * sizeof(Document))
        if not (self.low and self.bounds and self.pieces and self.word and self.beginning and self.hashes
                and self.nodes and self.documents):
            raise MemoryError
        for i in range(self.count):
            d = &self.documents[i]
            document = documents[i]
            if isinstance(document, str):
                d.data, d.n = <const uint8_t*>PyUnicode_DATA(document), PyUnicode_GET_LENGTH(document)
                d.width = PyUnicode_KIND(document)
            elif isinstance(document, bytes):
                d.data, d.n, d.width = <const uint8_t*>PyBytes_AS_STRING(document), PyBytes_GET_SIZE(document), 0
            else:
                raise TypeError(f"document {i} is {type(document).__name__}, not str or bytes")

    def __dealloc__(self):
        free(self.low)
        free(self.bounds)
        free(self.starts)
        free(self.stops)
        free(self.pieces)
        free(self.word)
        free(self.beginning)
        free(self.hashes)
        free(self.nodes)
        free(self.documents)


cdef void opened(Reader r) noexcept nogil:
    r.at = r.carry = 0
    r.inside = SEPARATOR


cdef int64_t block(Reader r, Document* d) noexcept nogil:
    """The pieces of the next block of the document, or what is wrong with it; `r.at` moves on."""
    cdef int64_t end = r.at + BLOCK, k = 0
    cdef bint ascii = d.width <= 1
    if not r.rule.words:
        return characters(r, d)
    r.used = 0
    end = end if end < d.n else d.n
    while k >= 0 and (end - r.at > 4 * LONGEST or r.at < end == d.n):  # a word that fills the rest is too long
        if not (ascii and plain(r, d, end, &k)):
            k = wide(r, d, end, k)
    return k


cdef bint plain(Reader r, Document* d, int64_t end, int64_t* found) noexcept nogil:
    """The ASCII that comes next: bits say where words begin and end, sixty-four at a time. False if there is none."""
    cdef int64_t m = end - r.at, base = 0, k = found[0], nb = 0, i, step, length, least = r.rule.least, longest = LONGEST
    cdef const uint8_t* text = d.data + r.at
    cdef const uint8_t* word = r.rule.word
    cdef uint8_t* low = r.low + r.used
    cdef uint32_t* bounds = r.bounds
    cdef Piece* pieces = r.pieces
    cdef uint64_t bits, change, last = 0, ones, last_one = 0, high
    cdef uint8_t kind
    cdef uint8_t rest[64]
    cdef uint32_t s
    cdef bint all = True
    while base < m:
        step = m - base if m - base < 64 else 64
        if step == 64:
            bits = sixty_four(text + base, low + base, r.rule.lowers, &high)
        else:
            memset(rest, 0, 64)
            memcpy(rest, text + base, step)
            bits = sixty_four(rest, low + base, r.rule.lowers, &high)
        if high:
            m, all = base, False
            break
        ones = 0
        if r.rule.singles:
            for i in range(step):
                ones |= <uint64_t>r.rule.single[text[base + i]] << i
            bits &= ~ones
        change = bits ^ (bits << 1 | last) | ones | ones << 1 | last_one
        last = bits >> 63
        last_one = ones >> 63
        while change:
            bounds[nb] = <uint32_t>(base + lowest(change))
            nb += 1
            change &= change - 1
        base += step
    while nb > 0 and bounds[nb - 1] >= m:
        nb -= 1
    bounds[nb] = <uint32_t>m
    if m == 0 or (not all and nb == 1 and bounds[0] == 0 and word[text[0]]):
        return False
    i = r.inside == WORD and nb > 0 and bounds[0] == 0 and word[text[0]]  # the rest of a word already counted
    r.inside = SEPARATOR
    if nb > 0 and r.at + m < d.n and word[text[bounds[nb - 1]]]:
        if bounds[nb - 1] > 0:  # it may go on: begin the next block with it
            m = bounds[nb - 1]
            nb -= 1
        else:
            r.inside = WORD
    if not r.rule.singles:  # every other run is a word
        i *= 2
    while i < nb:
        s = bounds[i]
        length = bounds[i + 1] - s
        pieces[k].at = low + s
        pieces[k].n = length if length < longest else longest
        if r.rule.singles:
            kind = r.rule.kind[text[s]]
            k += (kind == WORD) & (length >= least) | (kind == SINGLE)
            i += 1
        else:
            k += length >= least
            i += 2
    r.at += m
    r.used += m
    found[0] = k
    return True


cdef inline bint surrogate(uint32_t c) noexcept nogil:
    return 0xD800 <= c < 0xE000


cdef int64_t code_point(Document* d, int64_t at, uint32_t* c) noexcept nogil:
    """The character at a place, and how many units it takes there; nought if there is none."""
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
    """A character in lower case and what it is; nought, and the place in `r.bad`, if there is none."""
    cdef int64_t units = code_point(d, at, c)
    if units == 0 or c[0] >= r.rule.kinds.shape[0]:
        r.bad = at
        return 0
    c[0] = r.rule.lowered[c[0]]
    kind[0] = r.rule.kinds[c[0]]
    return units


cdef int64_t wide(Reader r, Document* d, int64_t end, int64_t k) noexcept nogil:
    """Any script; where ASCII is likely to come again, it stops at the next separator."""
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


cdef int64_t characters(Reader r, Document* d) noexcept nogil:
    """N-grams of characters, as many as the pieces hold at a time; the whole document is folded first."""
    cdef int64_t k = 0, n, begin, width
    if r.at == 0:
        n = folded_runs(r, d)
        if n < 0:
            return n
        r.runs, r.run, r.first, r.gram = n, 0, 0, r.rule.low
    while r.run < r.runs and k < BLOCK:
        begin = r.stops[r.run - 1] if r.run else 0
        n = r.stops[r.run] - begin
        if r.gram > r.rule.high or (r.gram > n and not r.rule.padded):
            r.run, r.first, r.gram = r.run + 1, 0, r.rule.low
            continue
        width = r.gram if r.gram < n else n
        begin += r.first
        r.pieces[k].at = r.low + r.starts[begin]
        r.pieces[k].n = r.starts[begin + width] - r.starts[begin]
        k += 1
        r.first += 1
        if r.first + width > n:
            r.first, r.gram = 0, r.gram + 1 if r.gram < n else r.rule.high + 1
    r.at = d.n if r.run >= r.runs else 1
    return k


cdef int64_t folded_runs(Reader r, Document* d) noexcept nogil:
    """The document in lower case with its white space squeezed, or word by word with a space on both sides of each."""
    cdef int64_t at = 0, o = 0, k = 0, runs = 0, spaces = 0, units
    cdef uint8_t kind
    cdef uint32_t c
    if d.n > 1 << 29 or enough(r, d.n) < 0:
        return NO_MEMORY
    while at < d.n:
        units = folded_at(r, d, at, &c, &kind)
        if units == 0:
            return MALFORMED
        at += units
        if kind == SPACE and spaces and not r.rule.padded:
            if spaces == 1:
                k -= 1
                o = r.starts[k]
                r.low[o] = 32
                o += 1
                k += 1
        elif kind == SPACE and r.rule.padded:
            if k and not spaces:
                o, k = blank(r, o, k), k + 1
                r.stops[runs] = <uint32_t>k
                runs += 1
        else:
            if r.rule.padded and (spaces or k == 0):
                o, k = blank(r, o, k), k + 1
            r.starts[k] = <uint32_t>o
            o += encoded(c, r.low + o)
            k += 1
        spaces = spaces + 1 if kind == SPACE else 0
    if r.rule.padded and k and not spaces:
        o, k = blank(r, o, k), k + 1
    r.starts[k] = <uint32_t>o
    if k and (not r.rule.padded or not spaces):
        r.stops[runs] = <uint32_t>k
        runs += 1
    return runs


cdef inline int64_t blank(Reader r, int64_t o, int64_t k) noexcept nogil:
    r.starts[k] = <uint32_t>o
    r.low[o] = 32
    return o + 1


cdef int enough(Reader r, int64_t n) noexcept nogil:
    """Room for the n-grams of characters of a document of n units."""
    cdef void* p
    if n + 1 > r.starts_room:
        r.starts_room = 2 * n + 64
        p = realloc(r.low, 6 * r.starts_room + PAD)
        if p == NULL:
            return NO_MEMORY
        r.low = <uint8_t*>p
        memset(r.low, 0, 6 * r.starts_room + PAD)
        p = realloc(r.starts, (3 * r.starts_room + 8) * sizeof(uint32_t))
        if p == NULL:
            return NO_MEMORY
        r.starts = <uint32_t*>p
        p = realloc(r.stops, (r.starts_room + 8) * sizeof(uint32_t))
        if p == NULL:
            return NO_MEMORY
        r.stops = <uint32_t*>p
    return 0
