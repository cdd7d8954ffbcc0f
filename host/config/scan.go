package config

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// Limits of an eval file: far more than anybody writes, so that neither this scanner nor the
// decoder can be made to recurse or to multiply long keys.
const (
	maxFileBytes = 1 << 20
	maxNesting   = 32
	maxKeyBytes  = 256
)

var (
	errTooDeep  = errors.New("keys and values nest deeper than 32 levels")
	errLongKey  = errors.New("a key is longer than 256 bytes")
	errEmptyKey = errors.New("a key is empty") // toml v1.6.0 loses values beside one: a = [1, { "" = 2 }]
)

// scanner finds the line of every key of a TOML document. The decoder has no positions for keys
// that it did not decode and none inside arrays of tables, hence this one. It presumes a document
// that the decoder accepts; on any other it yields something, never a panic.
type scanner struct {
	src    []byte
	pos    int
	line   int
	lines  map[string]int // key path → line
	tables map[string]int // path of an array of tables → its length so far
	depth  int
	err    error // the first limit that was passed
	errAt  int
}

// scanLines returns the line of each key path; an index of an array is an element of the path. The
// error is a limit that the document exceeds, with its line.
func scanLines(src []byte) (lines map[string]int, errLine int, err error) {
	s := &scanner{
		src: bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")), line: 1,
		lines: map[string]int{}, tables: map[string]int{},
	}
	var base toml.Key
	for s.skip(); s.pos < len(s.src) && s.err == nil; s.skip() {
		if s.src[s.pos] == '[' {
			base = s.header()
			continue
		}
		start := s.pos
		s.pair(base)
		if s.pos == start {
			s.pos++
		}
	}
	return s.lines, s.errAt, s.err
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err, s.errAt = err, s.line
	}
}

func (s *scanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *scanner) eat(c byte) bool {
	if s.pos < len(s.src) && s.src[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) blanks() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.pos++
	}
}

// skip passes blanks, line ends and comments.
func (s *scanner) skip() {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case '\n':
			s.line++
			s.pos++
		case ' ', '\t', '\r':
			s.pos++
		case '#':
			s.restOfLine()
		default:
			return
		}
	}
}

func (s *scanner) restOfLine() {
	if i := bytes.IndexByte(s.src[s.pos:], '\n'); i >= 0 {
		s.pos += i
		return
	}
	s.pos = len(s.src)
}

// header reads [a.b] or [[a.b]] and returns the path that the following pairs are under.
func (s *scanner) header() toml.Key {
	s.eat('[')
	array := s.eat('[')
	key := s.key()
	s.restOfLine()
	var path toml.Key
	for i, part := range key {
		path = child(path, part)
		name := path.String()
		last := i == len(key)-1
		if array && last {
			s.mark(path, false)
			s.tables[name]++
		}
		if n := s.tables[name]; n > 0 {
			path = child(path, strconv.Itoa(n-1))
		}
		s.mark(path, last)
	}
	return path
}

// pair reads key = value.
func (s *scanner) pair(base toml.Key) {
	key := s.key()
	path := base
	for _, part := range key {
		path = child(path, part)
		s.mark(path, false)
	}
	s.blanks()
	if len(key) == 0 || !s.eat('=') {
		s.restOfLine()
		return
	}
	s.value(path)
}

func (s *scanner) mark(path toml.Key, always bool) {
	if len(path) > maxNesting {
		s.fail(errTooDeep)
		return
	}
	name := path.String()
	if _, ok := s.lines[name]; !ok || always {
		s.lines[name] = s.line
	}
}

func (s *scanner) value(path toml.Key) {
	s.blanks()
	switch c := s.peek(); c {
	case '"', '\'':
		s.quoted(c)
	case '[':
		s.nested(func() { s.array(path) })
	case '{':
		s.nested(func() { s.inline(path) })
	default:
		for s.pos < len(s.src) && !strings.ContainsRune(",]}#\n", rune(s.src[s.pos])) {
			s.pos++
		}
	}
}

func (s *scanner) nested(read func()) {
	if s.depth >= maxNesting {
		s.fail(errTooDeep)
		s.pos = len(s.src)
		return
	}
	s.depth++
	read()
	s.depth--
}

func (s *scanner) array(path toml.Key) {
	s.pos++
	for i := 0; ; i++ {
		s.skip()
		if s.pos >= len(s.src) || s.eat(']') {
			return
		}
		start := s.pos
		elem := child(path, strconv.Itoa(i))
		s.mark(elem, true)
		s.value(elem)
		s.skip()
		s.eat(',')
		if s.pos == start {
			s.pos++
		}
	}
}

func (s *scanner) inline(path toml.Key) {
	s.pos++
	for {
		s.skip()
		if s.pos >= len(s.src) || s.eat('}') {
			return
		}
		start := s.pos
		s.pair(path)
		s.skip()
		s.eat(',')
		if s.pos == start {
			s.pos++
		}
	}
}

// quoted passes a string of any of the four kinds and returns what is between its quotes.
func (s *scanner) quoted(q byte) []byte {
	triple := bytes.Repeat([]byte{q}, 3)
	multi := bytes.HasPrefix(s.src[s.pos:], triple)
	n := 1
	if multi {
		n = 3
	}
	s.pos += n
	start := s.pos
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == '\\' && q == '"' && s.pos+1 < len(s.src) && s.src[s.pos+1] != '\n':
			s.pos++
		case c == '\n' && !multi:
			return s.src[start:s.pos]
		case c == '\n':
			s.line++
		case c == q && !multi:
			s.pos++
			return s.src[start : s.pos-1]
		case c == q && bytes.HasPrefix(s.src[s.pos:], triple):
			end := s.pos
			s.pos += 3
			for i := 0; i < 2 && s.eat(q); i++ { // """a""""" ends in two quotes of its own
				end++
			}
			return s.src[start:end]
		}
		s.pos++
	}
	return s.src[start:]
}

// key reads a dotted key; nil when there is no whole one.
func (s *scanner) key() toml.Key {
	var key toml.Key
	for {
		s.blanks()
		var part string
		switch c := s.peek(); c {
		case '"':
			part = unescape(s.quoted(c))
		case '\'':
			part = string(s.quoted(c))
		default:
			start := s.pos
			for s.pos < len(s.src) && bare(s.src[s.pos]) {
				s.pos++
			}
			if start == s.pos {
				return nil // nothing there, or nothing after a dot
			}
			part = string(s.src[start:s.pos])
		}
		if part == "" {
			s.fail(errEmptyKey)
		}
		if len(part) > maxKeyBytes {
			s.fail(errLongKey)
			part = part[:maxKeyBytes]
		}
		if len(key) == maxNesting {
			s.fail(errTooDeep)
			return key
		}
		key = append(key, part)
		s.blanks()
		if !s.eat('.') {
			return key
		}
	}
}

func bare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= utf8.RuneSelf
}

// unescape resolves the escapes of a basic string; what is no escape stays.
func unescape(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b)
	}
	simple := map[byte]byte{'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r', 'e': 0x1b, '"': '"', '\\': '\\'}
	width := map[byte]int{'x': 2, 'u': 4, 'U': 8}
	var out []byte
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			continue
		}
		i++
		if c, ok := simple[b[i]]; ok {
			out = append(out, c)
			continue
		}
		n := width[b[i]]
		if n > 0 && i+n < len(b) {
			if r, err := strconv.ParseUint(string(b[i+1:i+1+n]), 16, 32); err == nil {
				out = utf8.AppendRune(out, rune(r))
				i += n
				continue
			}
		}
		out = append(out, '\\', b[i])
	}
	return string(out)
}

// child is path + part in memory of its own.
func child(path toml.Key, part string) toml.Key {
	out := make(toml.Key, len(path)+1)
	copy(out, path)
	out[len(path)] = part
	return out
}
