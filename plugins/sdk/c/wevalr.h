// wevalr.h: what the author of a wevalr plugin in C includes. One file, no library, no libc.
//
//   #include "wevalr.h"
//
//   static int correct(wv_call *c) {
//     wv_score *s = wv_add_score(c);
//     s->answer = wv_text(wv_get(c->episode, "completion"));
//     s->value = wv_equal(s->answer, wv_text(wv_get(c->task, "target")));
//     return 0;
//   }
//
//   WEVALR_PLUGIN(.scorers = {{"correct", correct}})
//
// Build it with clang and wasm-ld, then append the manifest (encoding = "json"): wevalr plugin build.
//
//   clang-22 --target=wasm32-unknown-unknown -O2 -nostdlib -ffreestanding -fno-builtin -mbulk-memory
//     -fuse-ld=/usr/bin/wasm-ld-22 -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=131072 -o plugin.wasm plugin.c
//
// Include it in one source file of a plugin: it holds the exports of the ABI.
//
// Memory: everything lives until the next call, and what init allocated for ever; nothing is freed. A text
// is a pointer and a length, not ended by a zero. Where memory runs out the plugin traps and says so.
//
// Errors: a function of the plugin returns 0, or what wv_fail gives; wv_panic ends the call as a trap.
// Reading never fails: what is not there is the null value, whose text is "", whose number is 0.
#ifndef WEVALR_H
#define WEVALR_H

typedef __SIZE_TYPE__ wv_size;
typedef __INT32_TYPE__ wv_i32;
typedef __INT64_TYPE__ wv_i64;
typedef __UINT32_TYPE__ wv_u32;
typedef __UINT64_TYPE__ wv_u64;

#define WV_IMPORT(name) __attribute__((import_module("wevalr_v1"), import_name(#name)))
#define WV_EXPORT(name) __attribute__((export_name(#name), visibility("default")))

// The imports, as abi.wat has them. What a plugin does not use is not imported.
WV_IMPORT(log_enabled) wv_i32 wv_host_log_enabled(wv_i32 level);
WV_IMPORT(log) wv_i32 wv_host_log(wv_i32 level, const char *p, wv_size n);
WV_IMPORT(fail) wv_i32 wv_host_fail(const char *p, wv_size n);
WV_IMPORT(asset_len) wv_i32 wv_host_asset_len(const char *name, wv_size n);
WV_IMPORT(asset_read) wv_i32 wv_host_asset_read(const char *name, wv_size n, char *p, wv_size cap);
WV_IMPORT(env_start) wv_i32 wv_host_env_start(const char *p, wv_size n);
WV_IMPORT(env_await) wv_i32 wv_host_env_await(wv_i32 timeout_ms);
WV_IMPORT(env_poll) wv_i32 wv_host_env_poll(wv_i32 handle);
WV_IMPORT(env_cancel) wv_i32 wv_host_env_cancel(wv_i32 handle);
WV_IMPORT(env_take) wv_i32 wv_host_env_take(wv_i32 handle, char *p, wv_size cap);
WV_IMPORT(env_close) wv_i32 wv_host_env_close(wv_i32 handle);

// Statuses of imports; treat an unknown one as WV_INTERNAL.
enum {
  WV_DENIED = -1, WV_INVALID = -2, WV_TOO_LARGE = -3, WV_CANCELLED = -4, WV_DEADLINE = -5, WV_SERVER_EXITED = -6,
  WV_PEER_ERROR = -7, WV_WORKER_LOST = -8, WV_LIMIT = -9, WV_NOT_FOUND = -10, WV_INTERNAL = -11,
  WV_CONNECTION_LOST = -12, WV_STALLED = -13, WV_PROTOCOL = -14
};
enum { WV_DEBUG, WV_INFO, WV_WARN, WV_ERROR };

// A text: n bytes of UTF-8.
typedef struct { const char *p; wv_size n; } wv_str;

// WV makes a text of a literal.
#define WV(literal) ((wv_str){literal, sizeof(literal) - 1})

// -- memory and texts ----------------------------------------------------------------------------------------

extern char __heap_base;
static char *wv_base, *wv_top; // what is kept; what is in use

__attribute__((noreturn)) static inline void wv_panic(wv_str why) {
  wv_host_fail(why.p, why.n);
  __builtin_trap();
}

// wv_try_alloc gives n zeroed bytes that live until the next call; 0 where memory runs out.
static inline void *wv_try_alloc(wv_size n) {
  wv_size at = ((wv_size)wv_top + 7) & ~(wv_size)7, end = at + n, have = __builtin_wasm_memory_size(0) << 16;
  if (end < at || n > 0x7fffffff) return 0;
  if (end > have) {
    wv_size pages = (end - have + 0xffff) >> 16;
    if (__builtin_wasm_memory_grow(0, pages + 16) == (wv_size)-1 && __builtin_wasm_memory_grow(0, pages) == (wv_size)-1) return 0;
  }
  wv_top = (char *)end;
  __builtin_memset((void *)at, 0, n);
  return (void *)at;
}

// wv_alloc does the same, and traps where memory runs out.
static inline void *wv_alloc(wv_size n) {
  void *p = wv_try_alloc(n);
  if (!p) wv_panic(WV("out of memory"));
  return p;
}

static inline wv_str wv_cstr(const char *s) {
  wv_str t = {s, 0};
  while (s[t.n]) t.n++;
  return t;
}

static inline int wv_equal(wv_str a, wv_str b) {
  if (a.n != b.n) return 0;
  for (wv_size i = 0; i < a.n; i++)
    if (a.p[i] != b.p[i]) return 0;
  return 1;
}

// wv_find is the place of part in s, or -1.
static inline long wv_find(wv_str s, wv_str part) {
  for (wv_size i = 0; i + part.n <= s.n; i++)
    if (wv_equal((wv_str){s.p + i, part.n}, part)) return (long)i;
  return -1;
}

static inline int wv_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// wv_trim leaves out ASCII spaces at both ends.
static inline wv_str wv_trim(wv_str s) {
  while (s.n && wv_is_space(s.p[0])) s.p++, s.n--;
  while (s.n && wv_is_space(s.p[s.n - 1])) s.n--;
  return s;
}

// -- reading JSON --------------------------------------------------------------------------------------------

enum { WV_NULL, WV_FALSE, WV_TRUE, WV_NUMBER, WV_STRING, WV_ARRAY, WV_OBJECT };

// wv_value is a node of a tree; elements are linked by next, members have a key too.
typedef struct wv_value {
  int type;
  wv_str key, text; // text: of a string, of a number as it was written
  const struct wv_value *first, *next;
  wv_size count;
} wv_value;

static const wv_value wv_null = {0};

#define WV_EACH(item, of) for (const wv_value *item = (of)->first; item; item = item->next)

// wv_member is a member by name, the null value where there is none.
static inline const wv_value *wv_member(const wv_value *v, wv_str key) {
  if (v->type == WV_OBJECT) WV_EACH(m, v) if (wv_equal(m->key, key)) return m;
  return &wv_null;
}
#define wv_get(value, key) wv_member(value, WV(key))

static inline wv_str wv_text(const wv_value *v) { return v->type == WV_STRING ? v->text : (wv_str){"", 0}; }
static inline int wv_bool(const wv_value *v) { return v->type == WV_TRUE; }

// An exact decimal number in base 1e9: limb[WV_POINT - 1] are the units. Doubles fit with every digit.
enum { WV_LIMBS = 160, WV_POINT = 36 };
static wv_u32 wv_limb[WV_LIMBS];

// wv_scale multiplies by 2^e.
static inline void wv_scale(int e) {
  wv_u64 carry;
  for (int k; e > 0; e -= k) {
    k = e > 29 ? 29 : e, carry = 0;
    for (int i = WV_LIMBS - 1; i >= 0; i--)
      carry += (wv_u64)wv_limb[i] << k, wv_limb[i] = (wv_u32)(carry % 1000000000), carry /= 1000000000;
  }
  for (int k; e < 0; e += k) {
    k = e < -29 ? 29 : -e, carry = 0;
    for (int i = 0; i < WV_LIMBS; i++)
      carry = carry * 1000000000 + wv_limb[i], wv_limb[i] = (wv_u32)(carry >> k), carry &= (1ull << k) - 1;
  }
}

// wv_digits reads the digits of s, the first of them worth 10^exp, to the nearest double.
static inline double wv_digits(wv_str s, long exp) {
  int e = 0, i, more = 0;
  wv_u64 m = 0, bits;
  double f;
  for (i = 0; i < WV_LIMBS; i++) wv_limb[i] = 0;
  for (wv_size j = 0; j < s.n; j++) {
    if (s.p[j] == '.') continue;
    long at = WV_POINT * 9 - 1 - exp--;
    if (at < 0 && s.p[j] != '0') return __builtin_inf();
    if (at < 0 || at >= WV_LIMBS * 9) continue;
    wv_u32 d = (wv_u32)(s.p[j] - '0');
    for (long k = at % 9; k < 8; k++) d *= 10;
    wv_limb[at / 9] += d;
  }
  for (i = 0; i < WV_LIMBS && !wv_limb[i]; i++) {}
  if (i == WV_LIMBS) return 0;
  for (int big = 1; big;) { // down to less than 1e18
    for (big = 0, i = 0; i < WV_POINT - 2; i++) big |= wv_limb[i] != 0;
    if (big) wv_scale(-29), e += 29;
  }
  for (;;) {
    m = (wv_u64)wv_limb[WV_POINT - 2] * 1000000000 + wv_limb[WV_POINT - 1];
    if (m >> 53) wv_scale(-1), e++;
    else if (m >> 52 || e <= -1074) break;
    else { int k = m >> 23 || e < -1045 ? 1 : 29; wv_scale(k), e -= k; }
  }
  for (i = WV_POINT + 1; i < WV_LIMBS; i++) more |= wv_limb[i] != 0;
  if (wv_limb[WV_POINT] > 500000000 || (wv_limb[WV_POINT] == 500000000 && (more || (m & 1)))) m++;
  if (m >> 53) m >>= 1, e++;
  if (e > 971) return __builtin_inf();
  bits = m >> 52 ? (wv_u64)(e + 1075) << 52 | (m & 0xfffffffffffffull) : m;
  __builtin_memcpy(&f, &bits, 8);
  return f;
}

// wv_parse_number reads a decimal number, to the nearest double; ok says whether s is one.
static inline double wv_parse_number(wv_str s, int *ok) {
  static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  wv_size minus = s.n && s.p[0] == '-', i = minus, end;
  wv_u64 m = 0;
  long after = 0, digits = 0, e = 0, k = 0;
  int frac = 0, down = 0;
  for (; i < s.n; i++) {
    char c = s.p[i];
    if (c == '.' && !frac) { frac = 1; continue; }
    if (c < '0' || c > '9') break;
    digits++, after += frac;
    m = m < 1000000000000000000ull ? m * 10 + (wv_u64)(c - '0') : ~0ull;
  }
  end = i;
  if (digits && i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
    if (++i < s.n && (s.p[i] == '-' || s.p[i] == '+')) down = s.p[i++] == '-';
    for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++, k++)
      if (e < 100000) e = e * 10 + (s.p[i] - '0');
    if (!k) digits = 0;
    if (down) e = -e;
  }
  if (ok) *ok = digits > 0 && i == s.n;
  double f = (double)m;
  long exp = e - after; // of the last digit
  if (m >> 53 == 0 && exp >= -22 && exp <= 22) f = exp < 0 ? f / tens[-exp] : f * tens[exp];
  else if (m) f = wv_digits((wv_str){s.p + minus, end - minus}, exp + digits - 1);
  return minus ? -f : f;
}

static inline double wv_number(const wv_value *v) { return v->type == WV_NUMBER ? wv_parse_number(v->text, 0) : 0; }

// wv_int is an integer, exact up to 64 bits; of other numbers their whole part.
static inline wv_i64 wv_int(const wv_value *v) {
  if (v->type != WV_NUMBER) return 0;
  wv_u64 n = 0;
  int minus = v->text.p[0] == '-';
  for (wv_size i = (wv_size)minus; i < v->text.n; i++) {
    if (v->text.p[i] < '0' || v->text.p[i] > '9') {
      double f = wv_number(v);
      return f >= 9.2e18 ? __INT64_MAX__ : f <= -9.2e18 ? -__INT64_MAX__ : (wv_i64)f;
    }
    n = n * 10 + (wv_u64)(v->text.p[i] - '0');
  }
  return minus ? (wv_i64)(0 - n) : (wv_i64)n;
}

typedef struct { char *p, *end; int bad, depth; } wv_reader;

static inline char wv_peek(wv_reader *r) {
  while (r->p < r->end && wv_is_space(*r->p)) r->p++;
  return r->p < r->end ? *r->p : 0;
}

static inline wv_u32 wv_hex4(wv_reader *r) {
  wv_u32 v = 0;
  for (int i = 0; i < 4; i++) {
    char c = r->p < r->end ? *r->p++ : 0;
    if (c >= '0' && c <= '9') v = v << 4 | (wv_u32)(c - '0');
    else if ((c | 32) >= 'a' && (c | 32) <= 'f') v = v << 4 | (wv_u32)((c | 32) - 'a' + 10);
    else r->bad = 1;
  }
  return v;
}

static inline char *wv_rune(char *to, wv_u32 u) {
  if (u < 0x80) *to++ = (char)u;
  else if (u < 0x800) *to++ = (char)(0xc0 | u >> 6), *to++ = (char)(0x80 | (u & 63));
  else if (u < 0x10000) *to++ = (char)(0xe0 | u >> 12), *to++ = (char)(0x80 | (u >> 6 & 63)), *to++ = (char)(0x80 | (u & 63));
  else *to++ = (char)(0xf0 | u >> 18), *to++ = (char)(0x80 | (u >> 12 & 63)), *to++ = (char)(0x80 | (u >> 6 & 63)), *to++ = (char)(0x80 | (u & 63));
  return to;
}

// wv_read_string resolves escapes in place: they are never shorter than what they stand for.
static inline wv_str wv_read_string(wv_reader *r) {
  char *start = ++r->p, *to = start;
  while (r->p < r->end && *r->p != '"' && *r->p != '\\') r->p++;
  to = r->p;
  while (r->p < r->end && *r->p != '"') {
    if (*r->p != '\\') { *to++ = *r->p++; continue; }
    char c = ++r->p < r->end ? *r->p++ : 0;
    wv_u32 u;
    switch (c) {
      case '"': case '\\': case '/': *to++ = c; break;
      case 'b': *to++ = '\b'; break;
      case 'f': *to++ = '\f'; break;
      case 'n': *to++ = '\n'; break;
      case 'r': *to++ = '\r'; break;
      case 't': *to++ = '\t'; break;
      case 'u':
        u = wv_hex4(r);
        if (u >= 0xd800 && u < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
          r->p += 2;
          u = 0x10000 + ((u - 0xd800) << 10) + (wv_hex4(r) & 0x3ff);
        }
        to = wv_rune(to, u >= 0xd800 && u < 0xe000 ? 0xfffd : u);
        break;
      default: r->bad = 1; return (wv_str){start, 0};
    }
  }
  if (r->p >= r->end) r->bad = 1;
  r->p++;
  return (wv_str){start, (wv_size)(to - start)};
}

#define WV_MAX_DEPTH 256

static inline void wv_read_word(wv_reader *r, wv_str word, wv_value *v, int type) {
  if ((wv_size)(r->end - r->p) < word.n || !wv_equal((wv_str){r->p, word.n}, word)) r->bad = 1;
  r->p += word.n;
  v->type = type;
}

static inline void wv_read_value(wv_reader *r, wv_value *v) {
  char c = wv_peek(r);
  if (++r->depth > WV_MAX_DEPTH) r->bad = 1;
  if (r->bad) return;
  if (c == '{' || c == '[') {
    const wv_value **link = &v->first;
    char end = c == '{' ? '}' : ']';
    v->type = c == '{' ? WV_OBJECT : WV_ARRAY;
    r->p++;
    for (c = wv_peek(r); !r->bad && c != end; v->count++) {
      if (v->count && (c != ',' || (r->p++, 0))) r->bad = 1;
      wv_value *e = wv_alloc(sizeof *e);
      if (end == '}') {
        if (wv_peek(r) != '"') r->bad = 1;
        else e->key = wv_read_string(r);
        if (!r->bad && wv_peek(r) == ':') r->p++;
        else r->bad = 1;
      }
      if (!r->bad) wv_read_value(r, e);
      *link = e;
      link = (const wv_value **)&e->next;
      c = wv_peek(r);
    }
    r->p++;
  } else if (c == '"') v->type = WV_STRING, v->text = wv_read_string(r);
  else if (c == 't') wv_read_word(r, WV("true"), v, WV_TRUE);
  else if (c == 'f') wv_read_word(r, WV("false"), v, WV_FALSE);
  else if (c == 'n') wv_read_word(r, WV("null"), v, WV_NULL);
  else {
    int ok;
    v->text.p = r->p;
    while (r->p < r->end && ((*r->p >= '0' && *r->p <= '9') || *r->p == '-' || *r->p == '+' || *r->p == '.' || (*r->p | 32) == 'e')) r->p++;
    v->text.n = (wv_size)(r->p - v->text.p);
    v->type = WV_NUMBER;
    wv_parse_number(v->text, &ok);
    if (!ok) r->bad = 1;
  }
  r->depth--;
}

// wv_parse reads a JSON text, which it changes; 0 if it is not one.
static inline const wv_value *wv_parse(char *p, wv_size n) {
  wv_reader r = {p, p + n, 0, 0};
  wv_value *v = wv_alloc(sizeof *v);
  wv_read_value(&r, v);
  return r.bad || wv_peek(&r) ? 0 : v;
}

// -- writing JSON --------------------------------------------------------------------------------------------

// wv_json is a JSON text that grows. Commas come by themselves.
typedef struct { char *p; wv_size n, cap; int comma; } wv_json;

static inline void wv_raw(wv_json *w, wv_str s) {
  if (w->n + s.n > w->cap) {
    wv_size cap = (w->n + s.n) * 2 + 256;
    char *p = wv_alloc(cap);
    __builtin_memcpy(p, w->p, w->n);
    w->p = p, w->cap = cap;
  }
  __builtin_memcpy(w->p + w->n, s.p, s.n);
  w->n += s.n;
}

static inline void wv_item(wv_json *w, wv_str s, int comma) {
  if (w->comma) wv_raw(w, WV(","));
  wv_raw(w, s);
  w->comma = comma;
}

static inline void wv_open(wv_json *w) { wv_item(w, WV("{"), 0); }
static inline void wv_close(wv_json *w) { wv_raw(w, WV("}")), w->comma = 1; }
static inline void wv_open_list(wv_json *w) { wv_item(w, WV("["), 0); }
static inline void wv_close_list(wv_json *w) { wv_raw(w, WV("]")), w->comma = 1; }
static inline void wv_put_null(wv_json *w) { wv_item(w, WV("null"), 1); }
static inline void wv_put_bool(wv_json *w, int v) { wv_item(w, v ? WV("true") : WV("false"), 1); }

// wv_valid is the length of the UTF-8 character at p, 0 for a byte that begins none.
static inline wv_size wv_valid(const unsigned char *p, wv_size n) {
  wv_size k = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : *p >= 0xf0 && *p < 0xf5 ? 4 : 0;
  if (!k || k > n) return 0;
  for (wv_size i = 1; i < k; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f)) return 0;
  return k;
}

// wv_put_text writes a text; bytes that are not UTF-8 become U+FFFD.
static inline void wv_put_text(wv_json *w, wv_str s) {
  wv_size from = 0, k;
  wv_item(w, WV("\""), 1);
  for (wv_size i = 0; i < s.n; i += k) {
    unsigned char c = (unsigned char)s.p[i];
    k = wv_valid((const unsigned char *)s.p + i, s.n - i);
    if (k && c >= 32 && c != '"' && c != '\\') continue;
    wv_raw(w, (wv_str){s.p + from, i - from});
    if (!k) wv_raw(w, WV("\xef\xbf\xbd")), k = 1;
    else if (c >= 32) wv_raw(w, (wv_str){(char[]){'\\', (char)c}, 2});
    else wv_raw(w, (wv_str){(char[]){'\\', 'u', '0', '0', (char)('0' + (c >> 4)), "0123456789abcdef"[c & 15]}, 6});
    from = i + k;
  }
  wv_raw(w, (wv_str){s.p + from, s.n - from});
  wv_raw(w, WV("\""));
}

static inline void wv_put_int(wv_json *w, wv_i64 v) {
  char b[24];
  wv_size at = sizeof b;
  wv_u64 u = v < 0 ? 0 - (wv_u64)v : (wv_u64)v;
  do b[--at] = (char)('0' + u % 10);
  while (u /= 10);
  if (v < 0) b[--at] = '-';
  wv_item(w, (wv_str){b + at, sizeof b - at}, 1);
}

// wv_put_number writes 17 digits, which no double is lost by. NaN and Inf are written as such: the host
// refuses them.
static inline void wv_put_number(wv_json *w, double v) {
  if (v != v || v - v != 0) { wv_item(w, v != v ? WV("NaN") : WV("Infinity"), 1); return; }
  if (v == (double)(wv_i64)v && v < 9e15 && v > -9e15) { wv_put_int(w, (wv_i64)v); return; }
  wv_u64 bits;
  __builtin_memcpy(&bits, &v, 8);
  int e = (int)(bits >> 52 & 2047), minus = (int)(bits >> 63), i;
  wv_u64 m = (bits & 0xfffffffffffffull) | (e ? 1ull << 52 : 0); // v = m * 2^(e - 1075)
  for (i = 0; i < WV_LIMBS; i++) wv_limb[i] = 0;
  for (i = WV_POINT - 1; m; m /= 1000000000) wv_limb[i--] = (wv_u32)(m % 1000000000);
  wv_scale((e ? e : 1) - 1075);
  char d[32]; // digits; the exponent is of the first one
  int n = 0, exp = 0;
  for (i = 0; i < WV_LIMBS && n < 27; i++) {
    wv_u32 part = wv_limb[i], scale = 100000000;
    for (int j = 0; j < 9 && n < 27; j++, scale /= 10) {
      char c = (char)('0' + part / scale % 10);
      if (!n && c == '0') continue;
      if (!n) exp = (WV_POINT - 1 - i) * 9 + 8 - j;
      d[n++] = c;
    }
  }
  int up = n > 17 && d[17] >= '5';
  for (n = n > 17 ? 17 : n, i = n - 1; up && i >= 0; i--) up = d[i] == '9', d[i] = up ? '0' : (char)(d[i] + 1);
  if (up) d[0] = '1', exp++;
  while (n > 1 && d[n - 1] == '0') n--;
  wv_item(w, minus ? WV("-") : WV(""), 0);
  wv_raw(w, (wv_str){d, 1});
  if (n > 1) wv_raw(w, WV(".")), wv_raw(w, (wv_str){d + 1, (wv_size)n - 1});
  wv_raw(w, WV("e"));
  wv_put_int(w, exp);
}

// wv_key begins a member; its value must follow.
static inline void wv_key_text(wv_json *w, wv_str key) { wv_put_text(w, key), wv_raw(w, WV(":")), w->comma = 0; }
#define wv_key(json, literal) wv_key_text(json, WV(literal))

// wv_put_value writes what was read.
static inline void wv_put_value(wv_json *w, const wv_value *v) {
  switch (v->type) {
    case WV_NULL: wv_put_null(w); return;
    case WV_FALSE: case WV_TRUE: wv_put_bool(w, v->type == WV_TRUE); return;
    case WV_NUMBER: wv_item(w, v->text, 1); return;
    case WV_STRING: wv_put_text(w, v->text); return;
  }
  int object = v->type == WV_OBJECT;
  object ? wv_open(w) : wv_open_list(w);
  WV_EACH(e, v) {
    if (object) wv_key_text(w, e->key);
    wv_put_value(w, e);
  }
  object ? wv_close(w) : wv_close_list(w);
}

static inline wv_str wv_written(const wv_json *w) { return (wv_str){w->p, w->n}; }

// -- log and assets ------------------------------------------------------------------------------------------

// wv_log logs a text at WV_DEBUG, WV_INFO, WV_WARN or WV_ERROR.
static inline void wv_log(int level, wv_str text) {
  if (wv_host_log_enabled(level) > 0) wv_host_log(level, text.p, text.n);
}

// wv_asset gives a file that travels in the module: 0, or WV_NOT_FOUND.
static inline int wv_asset(wv_str name, wv_str *out) {
  wv_i32 n = wv_host_asset_len(name.p, name.n);
  if (n < 0) return n;
  char *p = wv_alloc((wv_size)n);
  *out = (wv_str){p, (wv_size)n};
  n = wv_host_asset_read(name.p, name.n, p, (wv_size)n);
  return n < 0 ? n : 0;
}

// -- calls ---------------------------------------------------------------------------------------------------

// wv_score is one score. name "" is the scorer's own; skipped is no score, which is not 0; metadata is the
// text of a JSON object, see wv_json.
typedef struct wv_score {
  wv_str name, label, explanation, answer, metadata;
  double value;
  int skipped;
  struct wv_score *next;
} wv_score;

// wv_call is a call of the host. task, episode and so on are what the operation has, else the null value.
typedef struct {
  wv_str scorer;
  wv_i64 seed, index;
  const wv_value *task, *episode, *episodes, *options;
  // What the function answers: use wv_add_score, wv_fail and wv_select.
  wv_score *first, **last;
  wv_json handles;
  wv_i64 selected;
  wv_i64 tasks;
  wv_str code, message, data; // of wv_fail; data is the text of a JSON object
  int retryable;
} wv_call;

// wv_scorer is a scorer by its name in the manifest.
typedef struct { const char *name; int (*score)(wv_call *); } wv_scorer;

// wv_plugin says what a plugin can do; what is 0 it cannot. The manifest must declare the same.
typedef struct {
  int (*init)(wv_call *);            // reads options
  wv_i64 (*tasks)(void);             // how many tasks there are, asked after init
  void (*task)(wv_json *, wv_i64 i); // writes task i: {"key": …, "data": {…}, "target": …}
  int (*rollout)(wv_call *);         // see wv_run and wv_select
  wv_scorer scorers[32], group_scorers[32];
} wv_plugin;

extern const wv_plugin wv_this;
#define WEVALR_PLUGIN(...) const wv_plugin wv_this = {__VA_ARGS__};

static inline wv_score *wv_add_score(wv_call *c) {
  wv_score *s = wv_alloc(sizeof *s);
  *c->last = s;
  c->last = &s->next;
  return s;
}

// wv_fail makes the call's answer the plugin's own failure: return what it gives.
static inline int wv_fail(wv_call *c, wv_str code, wv_str message) {
  c->code = code, c->message = message;
  return 1;
}

// -- the env-server, in a rollout ----------------------------------------------------------------------------

// wv_reply is how a call to the env-server ended: status 0 and an episode, or a status with its cause.
// server holds the facts of an env-server that has exited: generation, code or signal, uptime_s, log, tail.
typedef struct {
  int status;
  wv_str source, kind, message;
  const wv_value *episode, *server;
} wv_reply;

// wv_start makes a call and does not wait for it: a handle, or a status. request is {"task_data": …,
// "sampling"?: …}.
static inline int wv_start(const wv_json *request) { return wv_host_env_start(request->p, request->n); }

// wv_await gives each finished handle once; -1 waits without limit, 0 only looks. WV_DEADLINE: none in
// time, WV_NOT_FOUND: none is open.
static inline int wv_await(wv_i32 timeout_ms) { return wv_host_env_await(timeout_ms); }

// wv_take gives the reply of a finished handle; it may be repeated.
static inline int wv_take(int handle, wv_reply *r) {
  *r = (wv_reply){WV_INTERNAL, {"", 0}, {"", 0}, {"", 0}, &wv_null, &wv_null};
  wv_i32 n = wv_host_env_take(handle, 0, 0);
  if (n < 0) return r->status = n;
  char *p = wv_alloc((wv_size)n);
  n = wv_host_env_take(handle, p, (wv_size)n);
  if (n < 0) return r->status = n;
  const wv_value *v = wv_parse(p, (wv_size)n);
  if (!v) return r->status;
  r->episode = wv_get(v, "ok");
  v = wv_get(v, "err");
  r->source = wv_text(wv_get(v, "source")), r->kind = wv_text(wv_get(v, "kind")), r->message = wv_text(wv_get(v, "message"));
  r->server = wv_get(v, "server");
  if (r->episode->type == WV_OBJECT) r->status = 0;
  else if (v->type == WV_OBJECT) r->status = (int)wv_int(wv_get(v, "status"));
  return r->status;
}

// wv_run makes one call and waits for its reply: a handle, or a status. It takes the handles of other calls
// from wv_await's sequence, so use one way or the other. After an error the handle is closed.
static inline int wv_run(const wv_json *request, wv_reply *r) {
  int handle = wv_start(request), status = handle;
  *r = (wv_reply){status, {"", 0}, {"", 0}, {"", 0}, &wv_null, &wv_null};
  if (handle < 0) return handle;
  while ((status = wv_host_env_poll(handle)) == 0)
    if ((status = wv_await(-1)) < 0 && status != WV_NOT_FOUND) return r->status = status;
  if (wv_take(handle, r) == 0) return handle;
  wv_host_env_close(handle);
  return r->status;
}

// wv_select makes the episode of an open handle part of the rollout, as its selected one so far.
static inline void wv_select(wv_call *c, int handle) {
  c->selected = c->handles.n ? c->selected + 1 : 0;
  wv_put_int(&c->handles, handle);
}

static inline wv_str wv_status_name(int status) {
  static const char *const names[] = {"denied", "invalid", "too_large", "cancelled", "deadline", "server_exited", "peer_error",
    "worker_lost", "limit", "not_found", "internal", "connection_lost", "stalled", "protocol"};
  return wv_cstr(names[status > -15 && status < 0 ? -status - 1 : 10]);
}

// wv_fail_env passes a failed call to the env-server on, with its facts.
static inline int wv_fail_env(wv_call *c, const wv_reply *r) {
  if (r->source.n) {
    wv_json w = {0};
    wv_open(&w);
    wv_key(&w, "source"), wv_put_text(&w, r->source);
    wv_key(&w, "kind"), wv_put_text(&w, r->kind);
    if (r->server->type == WV_OBJECT) wv_key(&w, "server"), wv_put_value(&w, r->server);
    wv_close(&w);
    c->data = wv_written(&w);
  }
  return wv_fail(c, wv_status_name(r->status), r->message.n ? r->message : wv_status_name(r->status));
}

// -- the exports ---------------------------------------------------------------------------------------------

static char *wv_request;
static wv_size wv_request_len;

WV_EXPORT(wevalr_abi_1_0) void wv_abi(void) {}

WV_EXPORT(wevalr_buf) char *wv_buf(wv_size len) {
  if (!wv_base) wv_base = &__heap_base;
  wv_top = wv_base;
  wv_request_len = len;
  return wv_request = len > 64u << 20 ? 0 : wv_try_alloc(len + 1);
}

static inline void wv_write_score(wv_json *w, const wv_score *s) {
  wv_open(w);
  if (s->name.n) wv_key(w, "name"), wv_put_text(w, s->name);
  wv_key(w, "value");
  s->skipped ? wv_put_null(w) : wv_put_number(w, s->value);
  if (s->label.n) wv_key(w, "label"), wv_put_text(w, s->label);
  if (s->explanation.n) wv_key(w, "explanation"), wv_put_text(w, s->explanation);
  if (s->answer.n) wv_key(w, "answer"), wv_put_text(w, s->answer);
  if (s->metadata.n) wv_key(w, "metadata"), wv_item(w, s->metadata, 1);
  wv_close(w);
}

static inline void wv_write_scores(wv_json *w, const wv_call *c) {
  wv_key(w, "scores"), wv_open_list(w);
  for (const wv_score *s = c->first; s; s = s->next) wv_write_score(w, s);
  wv_close_list(w);
}

// A page ends after this many bytes: a response has a limit.
#define WV_PAGE (1 << 20)

static inline int wv_write_tasks(wv_call *c, wv_json *w, const wv_value *q) {
  int ok = 1;
  wv_str cursor = wv_text(wv_get(q, "cursor"));
  wv_i64 i = cursor.n ? (wv_i64)wv_parse_number(cursor, &ok) : 0, limit = wv_int(wv_get(q, "limit")), n;
  if (!wv_this.tasks || !wv_this.task) return wv_fail(c, WV("unsupported"), WV("this plugin has no tasks"));
  n = wv_this.tasks();
  if (!ok || i < 0 || i > n) return wv_fail(c, WV("bad_cursor"), WV("bad cursor"));
  wv_key(w, "tasks"), wv_open_list(w);
  for (wv_i64 k = 0; i < n && (k < limit || k == 0) && w->n < WV_PAGE; k++) wv_this.task(w, i++);
  wv_close_list(w);
  if (i < n) {
    wv_json next = {0};
    wv_put_int(&next, i);
    wv_key(w, "next"), wv_put_text(w, wv_written(&next));
  }
  return 0;
}

static inline int wv_dispatch(wv_call *c, wv_i32 op, wv_json *w, const wv_value *q) {
  int (*f)(wv_call *) = op == 1 ? wv_this.init : op == 3 ? wv_this.rollout : 0;
  const wv_scorer *list = op == 4 ? wv_this.scorers : wv_this.group_scorers;
  if (!q || q->type != WV_OBJECT) return wv_fail(c, WV("bad_request"), WV("the request cannot be read"));
  if (op == 2) return wv_write_tasks(c, w, q);
  c->options = wv_get(q, "options"), c->task = wv_get(q, "task");
  c->episode = wv_get(q, "episode"), c->episodes = wv_get(q, "episodes");
  c->scorer = wv_text(wv_get(q, "scorer")), c->seed = wv_int(wv_get(q, "seed")), c->index = wv_int(wv_get(q, "index"));
  for (int i = 0; (op == 4 || op == 5) && !f && i < 32 && list[i].name; i++)
    if (wv_equal(wv_cstr(list[i].name), c->scorer)) f = list[i].score;
  if (op < 1 || op > 5 || (op != 1 && !f)) return wv_fail(c, WV("unsupported"), WV("this plugin has no such scorer or operation"));
  if (f && f(c)) return 1;
  if (op == 1 && wv_this.tasks) wv_key(w, "tasks"), wv_put_int(w, wv_this.tasks());
  if (op == 3) {
    wv_key(w, "episodes"), wv_open_list(w), wv_item(w, wv_written(&c->handles), 1), wv_close_list(w);
    wv_key(w, "selected"), wv_put_int(w, c->selected);
  }
  if (op >= 3) wv_write_scores(w, c);
  return 0;
}

WV_EXPORT(wevalr_call) wv_u64 wv_serve(wv_i32 op, wv_size len) {
  if (!wv_request || len > wv_request_len) return 0;
  wv_call *c = wv_alloc(sizeof *c);
  wv_json ok = {0}, err = {0}, *w = &ok;
  c->last = &c->first;
  wv_open(&ok), wv_key(&ok, "ok"), wv_open(&ok);
  if (wv_dispatch(c, op, &ok, wv_parse(wv_request, len))) {
    w = &err;
    wv_open(w), wv_key(w, "err"), wv_open(w);
    wv_key(w, "code"), wv_put_text(w, c->code);
    wv_key(w, "message"), wv_put_text(w, c->message);
    if (c->retryable) wv_key(w, "retryable"), wv_put_bool(w, 1);
    if (c->data.n) wv_key(w, "data"), wv_item(w, c->data, 1);
  }
  wv_close(w), wv_close(w);
  // What init has allocated stays; the answer of this call is read before the next one.
  if (op == 1) wv_base = wv_top;
  return (wv_u64)(wv_size)w->p << 32 | w->n;
}

#endif
