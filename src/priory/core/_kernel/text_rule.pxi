# State of a pass over texts: the declared tokenizer as tables, the documents as pointers, and scratch memory. Nothing is
# allocated per word, and the memory does not depend on the length of a word.

cpdef enum:  # kinds of code points
    SEPARATOR = 0
    WORD = 1       # digits and the underscore: they belong to the word around them
    SINGLE = 2     # a single-character token, such as "!"
    SPACELESS = 3  # a script written without spaces: its runs become characters and pairs of them
    SPACE = 4
    MARK = 5       # combining marks belong to the character before them
    JOINER = 6     # joins words, of any scripts
    LETTER = 7     # of the Latin script; LETTER + i is a letter of script i, and ends a word of another script

cdef enum:
    BLOCK = 16384
    PIECES = 2 * BLOCK  # at most two for each character

MAX_WORD_LENGTH = 1024  # in code points; longer words are truncated (the longest in a dozen real collections has 304)

cdef int64_t LONGEST = MAX_WORD_LENGTH
cdef int64_t LONGEST_CLUSTER = 32  # code points of a character with its marks; a mark beyond that begins the next

cdef struct Document:
    const uint8_t* data
    int64_t n
    int width  # bytes of a character; 0 for UTF-8


cdef class Rule:
    """The declared tokenizer as tables: the kind and the lower case of each code point."""
    cdef public object unit, rewrites
    cdef int64_t least, low, high
    cdef uint8_t single[128]
    cdef uint16_t shortest[256]  # minimum length of pieces that begin with this character
    cdef bint lowers, singles, words, padded
    cdef uint8_t joiner  # an ASCII character that belongs to words; the underscore does anyway
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
        for c in range(256):
            self.shortest[c] = 1 if c < 128 and self.kinds[c] == SINGLE else least
        self.joiner = 95
        for c in range(128):
            self.single[c] = self.kinds[c] == SINGLE
            self.singles |= self.single[c]
            if self.kinds[c] == JOINER:
                self.joiner = c
        self.known = Rewrites(rewrites) if rewrites else None


@cython.final
cdef class Rewrites(Trie):
    """Words that are replaced before counting (by a stem), or dropped (stop words)."""
    cdef Piece* into
    cdef bytes texts

    def __init__(self, rewrites):
        cdef bytes word, text, padded
        cdef Piece piece
        cdef Word* w
        cdef uint64_t start
        self.into = <Piece*>zeros(max(len(rewrites), 1) * sizeof(Piece))
        if self.into == NULL or make_room(self, 2 * len(rewrites), 0) < 0:
            raise MemoryError
        starts = []
        for surface, target in rewrites.items():
            word, text = surface.encode(), (target or "").encode()
            if 0 < len(word) < LENGTH:
                padded = word + bytes(PAD)
                piece = piece_at(padded, len(word))
                w = word_slot(self, &piece)
                if w.place == 0 and put_word(self, w, &piece, len(starts)) < 0:
                    raise MemoryError
                starts.append(text)
        self.texts, start = b"".join([text + bytes(PAD) for text in starts]), 0
        for i, text in enumerate(starts):
            self.into[i].at = <const uint8_t*>self.texts + start
            self.into[i].n = len(text)
            start += len(text) + PAD

    def __dealloc__(self):
        free(self.into)


cdef class Reader:
    """Scratch memory of one pass: the lower-case bytes of a block, its pieces, and the numbers of its tokens."""
    cdef Rule rule
    cdef Rewrites known
    cdef uint8_t* low
    cdef uint32_t* places       # of the characters in `low` in the document; NULL unless they are asked for
    cdef uint32_t* starts       # of the characters in `low`, for n-grams of characters
    cdef uint32_t* stops        # where each run of characters ends
    cdef Piece* pieces
    cdef int64_t* word          # numbers of the words, preceded by the last few of the previous block
    cdef int64_t* beginning
    cdef uint64_t* hashes
    cdef int64_t* nodes
    cdef int64_t starts_room
    cdef Document* documents
    cdef object kept
    cdef int64_t count, at, used, carry, bad
    cdef uint8_t inside         # a run of this kind continues from the previous block, and was counted there
    cdef int64_t runs, run, first, gram

    def __cinit__(self, Rule rule, documents):
        cdef int64_t i
        cdef Document* d
        cdef const uint8_t[::1] memory
        cdef const int64_t[::1] edges
        if rule.high > 64:
            raise ValueError("n-grams of more than 64 words")
        self.rule, self.known, self.kept, self.count = rule, rule.known, documents, len(documents)
        self.low = <uint8_t*>zeros(4 * BLOCK + 64 + PAD)
        self.pieces = <Piece*>zeros((PIECES + 2) * sizeof(Piece))
        self.word = <int64_t*>zeros((PIECES + 80) * sizeof(int64_t))
        self.beginning = <int64_t*>zeros((PIECES + 80) * sizeof(int64_t))
        self.hashes = <uint64_t*>zeros((PIECES + 80) * sizeof(uint64_t))
        self.nodes = <int64_t*>zeros((PIECES + 80) * rule.high * sizeof(int64_t))
        self.documents = <Document*>zeros((self.count + 1) * sizeof(Document))
        if not (self.low and self.pieces and self.word and self.beginning and self.hashes
                and self.nodes and self.documents):
            raise MemoryError
        if not isinstance(documents, list):  # PackedDocuments
            memory, edges = documents.memory, documents.edges
            for i in range(self.count):
                if not 0 <= edges[i] <= edges[i + 1] <= memory.shape[0]:
                    raise ValueError(f"document {i} is not inside of the memory")
                if edges[i + 1] > edges[i]:
                    self.documents[i].data, self.documents[i].n = &memory[edges[i]], edges[i + 1] - edges[i]
            return
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
        free(self.places)
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
