//! JSON values: what a plugin reads and writes.

use std::ops::Index;

/// A JSON value. Members of objects keep their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Json {
    #[default]
    Null,
    Bool(bool),
    /// A number that was written without a point and fits.
    Int(i64),
    /// NaN and infinities are written as such: the host refuses them.
    Number(f64),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// An object of the members given.
pub fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    Json::Object(members.into_iter().map(|(k, v)| (k.into(), v)).collect())
}

static NULL: Json = Json::Null;

impl Json {
    pub fn is_null(&self) -> bool {
        *self == Json::Null
    }

    /// A string; "" for anything else.
    pub fn text(&self) -> &str {
        match self {
            Json::Text(s) => s,
            _ => "",
        }
    }

    /// A number; 0 for anything else.
    pub fn number(&self) -> f64 {
        match self {
            Json::Int(n) => *n as f64,
            Json::Number(f) => *f,
            _ => 0.0,
        }
    }

    /// A number's whole part; 0 for anything else.
    pub fn int(&self) -> i64 {
        match self {
            Json::Int(n) => *n,
            Json::Number(f) => *f as i64,
            _ => 0,
        }
    }

    pub fn bool(&self) -> bool {
        *self == Json::Bool(true)
    }

    /// The items of an array; none for anything else.
    pub fn items(&self) -> &[Json] {
        match self {
            Json::Array(list) => list,
            _ => &[],
        }
    }

    /// Takes a member out.
    pub fn take(&mut self, key: &str) -> Json {
        if let Json::Object(m) = self {
            if let Some((_, v)) = m.iter_mut().find(|(k, _)| k == key) {
                return std::mem::take(v);
            }
        }
        Json::Null
    }

    /// Appends the value's text.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Json::Null => out.extend(b"null"),
            Json::Bool(v) => out.extend(if *v { &b"true"[..] } else { b"false" }),
            Json::Int(n) => out.extend(n.to_string().bytes()),
            Json::Number(f) => out.extend(format!("{:e}", f).bytes()),
            Json::Text(s) => quote(s, out),
            Json::Array(list) => {
                out.push(b'[');
                for (i, v) in list.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    v.write(out);
                }
                out.push(b']');
            }
            Json::Object(m) => {
                out.push(b'{');
                for (i, (k, v)) in m.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    quote(k, out);
                    out.push(b':');
                    v.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

fn quote(s: &str, out: &mut Vec<u8>) {
    out.reserve(s.len() + 2);
    out.push(b'"');
    let mut from = 0;
    for (i, c) in s.bytes().enumerate() {
        if c >= 32 && c != b'"' && c != b'\\' {
            continue;
        }
        out.extend_from_slice(&s.as_bytes()[from..i]);
        from = i + 1;
        if c < 32 {
            out.extend(format!("\\u{:04x}", c).bytes());
        } else {
            out.extend([b'\\', c]);
        }
    }
    out.extend_from_slice(&s.as_bytes()[from..]);
    out.push(b'"');
}

/// A member by name, null where there is none.
impl Index<&str> for Json {
    type Output = Json;
    fn index(&self, key: &str) -> &Json {
        match self {
            Json::Object(m) => m.iter().find(|(k, _)| k == key).map_or(&NULL, |(_, v)| v),
            _ => &NULL,
        }
    }
}

/// An item by place, null where there is none.
impl Index<usize> for Json {
    type Output = Json;
    fn index(&self, i: usize) -> &Json {
        self.items().get(i).unwrap_or(&NULL)
    }
}

impl From<&str> for Json {
    fn from(s: &str) -> Json {
        Json::Text(s.into())
    }
}

impl From<String> for Json {
    fn from(s: String) -> Json {
        Json::Text(s)
    }
}

impl From<i64> for Json {
    fn from(n: i64) -> Json {
        Json::Int(n)
    }
}

impl From<f64> for Json {
    fn from(f: f64) -> Json {
        Json::Number(f)
    }
}

impl From<bool> for Json {
    fn from(v: bool) -> Json {
        Json::Bool(v)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(list: Vec<T>) -> Json {
        Json::Array(list.into_iter().map(Into::into).collect())
    }
}

const MAX_DEPTH: usize = 128;

/// Reads a JSON text; None if it is not one.
pub fn parse(text: &[u8]) -> Option<Json> {
    let mut r = Reader { text: std::str::from_utf8(text).ok()?, at: 0 };
    let v = r.value(0)?;
    r.peek().is_none().then(|| v)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn peek(&mut self) -> Option<u8> {
        while self.byte()?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.byte()
    }

    fn word(&mut self, word: &str, v: Json) -> Option<Json> {
        let there = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        there.then(|| v)
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()? {
            b'{' => {
                let mut m = Vec::new();
                self.at += 1;
                while self.peek()? != b'}' {
                    self.comma(m.is_empty())?;
                    let key = self.string()?;
                    if self.peek()? != b':' {
                        return None;
                    }
                    self.at += 1;
                    m.push((key, self.value(depth + 1)?));
                }
                self.at += 1;
                Some(Json::Object(m))
            }
            b'[' => {
                let mut list = Vec::new();
                self.at += 1;
                while self.peek()? != b']' {
                    self.comma(list.is_empty())?;
                    list.push(self.value(depth + 1)?);
                }
                self.at += 1;
                Some(Json::Array(list))
            }
            b'"' => self.string().map(Json::Text),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'n' => self.word("null", Json::Null),
            _ => self.number(),
        }
    }

    fn comma(&mut self, first: bool) -> Option<()> {
        if first {
            return Some(());
        }
        (self.peek()? == b',').then(|| self.at += 1)
    }

    fn number(&mut self) -> Option<Json> {
        let start = self.at;
        while self.byte().map_or(false, |c| c.is_ascii_digit() || b"+-.eE".contains(&c)) {
            self.at += 1;
        }
        let s = &self.text[start..self.at];
        s.parse().map(Json::Int).or_else(|_| s.parse().map(Json::Number)).ok()
    }

    fn string(&mut self) -> Option<String> {
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let n = rest.iter().position(|c| *c == b'"' || *c == b'\\')?;
            out.push_str(&self.text[self.at..self.at + n]);
            self.at += n + 1;
            if rest[n] == b'"' {
                return Some(out);
            }
            let c = self.byte()?;
            self.at += 1;
            out.push(match c {
                b'"' | b'\\' | b'/' => c as char,
                b'b' => '\x08',
                b'f' => '\x0c',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => self.escaped()?,
                _ => return None,
            });
        }
    }

    fn escaped(&mut self) -> Option<char> {
        let mut u = self.hex4()?;
        if u >> 10 == 0x36 && self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            self.at += 2;
            u = 0x10000 + ((u & 0x3ff) << 10) + (self.hex4()? & 0x3ff);
        }
        Some(char::from_u32(u).unwrap_or('\u{fffd}'))
    }

    fn hex4(&mut self) -> Option<u32> {
        let s = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        u32::from_str_radix(s, 16).ok()
    }
}
