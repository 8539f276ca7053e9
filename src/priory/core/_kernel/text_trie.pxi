# Tokens and their numbers: a table of words, and a table of n-grams as pairs (number of the beginning, number of the
# last word). A pair of numbers is an exact key, so the text of an n-gram is built only when it is requested.

cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #if defined(_MSC_VER)
      #include <intrin.h>
      static __inline uint64_t folded(uint64_t a, uint64_t b) {
          uint64_t high, low = _umul128(a, b, &high); return low ^ high; }
      static __inline int lowest(uint64_t bits) { unsigned long i; _BitScanForward64(&i, bits | 1ull << 63); return (int) i; }
      #define soon(place) ((void) (place))
    #else
      static inline uint64_t folded(uint64_t a, uint64_t b) {
          unsigned __int128 product = (unsigned __int128) a * b;
          return (uint64_t) product ^ (uint64_t) (product >> 64); }
      #define lowest(bits) __builtin_ctzll((bits) | 1ull << 63)  /* 63 if there is none */
      #define soon(place) __builtin_prefetch(place)
    #endif
    /* Sixty-four bytes in lower case; a bit for each that is a letter, a digit, an underscore or the joiner, in ASCII. */
    #if defined(__SSE2__)
      #include <emmintrin.h>
      static inline uint64_t sixty_four(const uint8_t *text, uint8_t *low, int lowers, uint8_t joiner, uint64_t *high) {
          uint64_t bits = 0, beyond = 0;
          for (int i = 0; i < 4; i++) {
              __m128i c = _mm_loadu_si128((const __m128i *) (text + 16 * i));
              __m128i small = _mm_or_si128(c, _mm_set1_epi8(0x20));
              __m128i letter = _mm_and_si128(_mm_cmpgt_epi8(small, _mm_set1_epi8('a' - 1)),
                                             _mm_cmplt_epi8(small, _mm_set1_epi8('z' + 1)));
              __m128i digit = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8('0' - 1)),
                                            _mm_cmplt_epi8(c, _mm_set1_epi8('9' + 1)));
              __m128i joined = _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8('_')),
                                            _mm_cmpeq_epi8(c, _mm_set1_epi8((char) joiner)));
              __m128i word = _mm_or_si128(_mm_or_si128(letter, digit), joined);
              __m128i lower = _mm_or_si128(c, _mm_and_si128(letter, _mm_set1_epi8(0x20)));
              _mm_storeu_si128((__m128i *) (low + 16 * i), lowers ? lower : c);
              bits |= (uint64_t) (uint16_t) _mm_movemask_epi8(word) << 16 * i;
              beyond |= (uint64_t) _mm_movemask_epi8(c);
          }
          *high = beyond;
          return bits; }
    #else
      static inline uint64_t sixty_four(const uint8_t *text, uint8_t *low, int lowers, uint8_t joiner, uint64_t *high) {
          uint64_t bits = 0; uint8_t all = 0;
          for (int i = 0; i < 64; i++) {
              uint8_t c = text[i], small = c | 0x20;
              int letter = small >= 'a' && small <= 'z';
              all |= c;
              low[i] = lowers && letter ? small : c;
              bits |= (uint64_t) (letter || (c >= '0' && c <= '9') || c == '_' || c == joiner) << i;
          }
          *high = all & 0x80;
          return bits; }
    #endif
    #if defined(__linux__)
      #include <sys/mman.h>
      #include <string.h>
      /* No slot across two cache lines; large pages, or each step of a random walk looks up its page as well. */
      static void *table(size_t size) {
          size_t large = (size_t) 1 << 21, unit = size < 2 * large ? 64 : large;
          size = (size + unit - 1) & ~(unit - 1);
          void *p = aligned_alloc(unit, size);
          if (p && unit == large) madvise(p, size, MADV_HUGEPAGE);
          return p ? memset(p, 0, size) : p; }
    #else
      static void *table(size_t size) { return calloc(size, 1); }
    #endif
    static void *zeros(size_t size) { return calloc(size, 1); }
    """
    uint64_t folded(uint64_t a, uint64_t b) noexcept nogil
    uint64_t sixty_four(const uint8_t* text, uint8_t* low, bint lowers, uint8_t joiner, uint64_t* high) noexcept nogil
    int lowest(uint64_t bits) noexcept nogil
    void soon(const void* place) noexcept nogil
    void* zeros(size_t size) noexcept nogil
    void* table(size_t size) noexcept nogil
    bint unlikely(bint condition) noexcept nogil  # a macro of Cython's


cdef enum:
    UNKNOWN = -1
    NO_MEMORY = -2
    MALFORMED = -3
    LENGTH = (1 << 24) - 1
    PAD = 32  # readable bytes after any text, so that sixteen can be loaded at once

cdef uint64_t PAIR = <uint64_t>1 << 63
cdef int64_t MOST_NODES = (<int64_t>1 << 31) - (1 << 21)

cdef struct Seeds:
    uint64_t a, b, c

cdef struct Piece:
    const uint8_t* at
    uint64_t n, hash, head, tail

cdef struct Word:
    uint64_t head, tail  # the first sixteen bytes: for most words the whole comparison
    uint64_t place       # start in the arena << 24 | length; 0 if the slot is free
    uint32_t node
    uint32_t mark        # the last document with the word

cdef struct Gram:
    uint64_t key         # (beginning + 1) << 32 | (last word + 1); 0 if the slot is free
    uint32_t node, mark

cdef uint64_t HEAD[17]
cdef uint64_t TAIL[17]
for _n in range(17):
    HEAD[_n] = (1 << 8 * min(_n, 8)) - 1
    TAIL[_n] = (1 << 8 * max(_n - 8, 0)) - 1


cdef inline void sixteen(const uint8_t* p, uint64_t n, uint64_t* head, uint64_t* tail) noexcept nogil:
    cdef uint64_t kept = n if n < 16 else 16
    memcpy(head, p, 8)
    memcpy(tail, p + 8, 8)
    head[0] &= HEAD[kept]
    tail[0] &= TAIL[kept]


cdef inline void hashed(Piece* piece, const Seeds* seeds) noexcept nogil:
    cdef uint64_t head, tail, at = 16
    sixteen(piece.at, piece.n, &piece.head, &piece.tail)
    cdef uint64_t h = folded(piece.head ^ seeds.a, piece.tail ^ seeds.b)
    while unlikely(at < piece.n):
        sixteen(piece.at + at, piece.n - at, &head, &tail)
        h = folded(head ^ seeds.a ^ h, tail ^ seeds.b)
        at += 16
    piece.hash = folded(h ^ piece.n, seeds.c)


cdef inline Piece piece_at(const uint8_t* p, uint64_t n) noexcept nogil:
    cdef Piece piece
    piece.at, piece.n = p, n
    hashed(&piece, &SEEDS)
    return piece


cdef inline uint64_t joined(uint64_t beginning, uint64_t last, const Seeds* seeds) noexcept nogil:
    return folded(beginning ^ seeds.b, last ^ seeds.c)


cdef Seeds seeds_from(uint64_t salt) noexcept nogil:
    """Three odd words from one (splitmix64): the same salt gives the same hash everywhere."""
    cdef Seeds seeds
    cdef uint64_t z[3]
    cdef int i
    for i in range(3):
        salt += <uint64_t>0x9E3779B97F4A7C15
        z[i] = (salt ^ (salt >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
        z[i] = (z[i] ^ (z[i] >> 27)) * <uint64_t>0x94D049BB133111EB
        z[i] = (z[i] ^ (z[i] >> 31)) | 1
    seeds.a, seeds.b, seeds.c = z[0], z[1], z[2]
    return seeds


# Random in every process, so that texts cannot be crafted to collide.
cdef Seeds SEEDS = seeds_from(int.from_bytes(os.urandom(8), "little"))


cdef class Trie:
    cdef Word* words
    cdef Gram* grams
    cdef uint8_t* arena
    cdef uint64_t word_size, word_used, gram_size, gram_used, arena_used, arena_room
    cdef int64_t nodes

    def __cinit__(self, *args):
        self.word_size = self.gram_size = 64
        self.arena_room = 1024
        self.words = <Word*>table(self.word_size * sizeof(Word))
        self.grams = <Gram*>table(self.gram_size * sizeof(Gram))
        self.arena = <uint8_t*>zeros(self.arena_room + PAD)
        if self.words == NULL or self.grams == NULL or self.arena == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.words)
        free(self.grams)
        free(self.arena)


cdef inline Word* word_slot(Trie trie, const Piece* p) noexcept nogil:
    """The slot of the word, or the free slot where it belongs."""
    cdef uint64_t mask = trie.word_size - 1, h = p.hash & mask
    cdef Word* w
    while True:
        w = &trie.words[h]
        if w.head == p.head and w.tail == p.tail and (w.place & LENGTH) == p.n and (
                p.n <= 16 or memcmp(trie.arena + (w.place >> 24) + 16, p.at + 16, p.n - 16) == 0):
            return w
        if w.place == 0:
            return w
        h = (h + 1) & mask


cdef inline Gram* gram_home(Trie trie, uint64_t key) noexcept nogil:
    return &trie.grams[folded(key ^ SEEDS.a, SEEDS.c) & (trie.gram_size - 1)]


cdef inline Gram* gram_slot(Trie trie, uint64_t key) noexcept nogil:
    """The slot of the n-gram, or the free slot where it belongs."""
    cdef uint64_t mask = trie.gram_size - 1, h = gram_home(trie, key) - trie.grams
    while trie.grams[h].key != key and trie.grams[h].key != 0:
        h = (h + 1) & mask
    return &trie.grams[h]


cdef inline uint64_t pair(int64_t beginning, int64_t last) noexcept nogil:
    return <uint64_t>(beginning + 1) << 32 | <uint64_t>(last + 1)


cdef inline int64_t beginning_of(uint64_t key) noexcept nogil:
    return <int64_t>((key & ~PAIR) >> 32) - 1


cdef inline int64_t last_of(uint64_t key) noexcept nogil:
    return <int64_t>(key & <uint64_t>0xFFFFFFFF) - 1


cdef inline int64_t find_word(Trie trie, const Piece* piece) noexcept nogil:
    cdef Word* w = word_slot(trie, piece)
    return <int64_t>w.node if w.place else UNKNOWN


cdef inline int64_t find_gram(Trie trie, int64_t beginning, int64_t last) noexcept nogil:
    cdef Gram* g
    if beginning < 0 or last < 0:
        return UNKNOWN
    g = gram_slot(trie, pair(beginning, last))
    return <int64_t>g.node if g.key else UNKNOWN


cdef int64_t put_word(Trie trie, Word* w, const Piece* piece, int64_t node) noexcept nogil:
    """Store a new word in its free slot. The caller must have reserved memory in the table."""
    cdef uint64_t room, n = piece.n
    cdef uint8_t* wider
    if trie.arena_used + n > trie.arena_room:
        room = 2 * trie.arena_room + n
        wider = <uint8_t*>realloc(trie.arena, room + PAD)
        if wider == NULL:
            return NO_MEMORY
        trie.arena, trie.arena_room = wider, room
    memcpy(trie.arena + trie.arena_used, piece.at, n)
    memset(trie.arena + trie.arena_used + n, 0, PAD)
    w.head, w.tail = piece.head, piece.tail
    w.place = trie.arena_used << 24 | n
    w.node, w.mark = <uint32_t>node, 0
    trie.arena_used += n
    trie.word_used += 1
    return node


cdef int make_room(Trie trie, uint64_t words, uint64_t grams) noexcept nogil:
    """Reserve memory for more entries, so that loops need no checks: word tables are at most 2/3 full, n-gram tables 1/2."""
    cdef uint64_t size, i, n, mask
    cdef Word* more_words
    cdef Gram* more_grams
    cdef Gram* g
    if 3 * (trie.word_used + words) > 2 * trie.word_size:
        size = trie.word_size
        while 3 * (trie.word_used + words) > 2 * size:
            size *= 2
        more_words = <Word*>table(size * sizeof(Word))
        if more_words == NULL:
            return NO_MEMORY
        more_words, trie.words = trie.words, more_words
        i, trie.word_size = trie.word_size, size
        while i > 0:
            i -= 1
            if more_words[i].place:
                put_back(trie, more_words[i])
        free(more_words)
    if 2 * (trie.gram_used + grams) > trie.gram_size:
        size = trie.gram_size
        while 2 * (trie.gram_used + grams) > size:
            size *= 2
        more_grams = <Gram*>table(size * sizeof(Gram))
        if more_grams == NULL:
            return NO_MEMORY
        more_grams, trie.grams = trie.grams, more_grams
        n, trie.gram_size = trie.gram_size, size
        for i in range(n):
            if i + 16 < n:
                soon(gram_home(trie, more_grams[i + 16].key))
            if more_grams[i].key:
                g = gram_slot(trie, more_grams[i].key)
                g[0] = more_grams[i]
        free(more_grams)
    return 0


cdef void put_back(Trie trie, Word word) noexcept nogil:
    """Insert a word into a larger table. Early words tend to be frequent: of two that collide, the later one is moved."""
    cdef uint64_t mask = trie.word_size - 1
    cdef uint64_t h = piece_at(trie.arena + (word.place >> 24), word.place & LENGTH).hash & mask
    while trie.words[h].place:
        if word.node < trie.words[h].node:
            trie.words[h], word = word, trie.words[h]
        h = (h + 1) & mask
    trie.words[h] = word
