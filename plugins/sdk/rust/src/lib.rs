//! What the author of a wevalr plugin in Rust uses, as a crate or as a module copied beside the plugin:
//! std only, Rust 1.63 or newer.
//!
//! ```ignore
//! mod wevalr;
//! use wevalr::{Call, Error, Plugin, Score};
//!
//! struct Mine;
//!
//! impl Plugin for Mine {
//!     fn scorers(&self) -> &[&str] {
//!         &["correct"]
//!     }
//!
//!     fn score(&mut self, c: &Call) -> Result<Vec<Score>, Error> {
//!         let answer = c.episode["completion"].text();
//!         Ok(vec![Score::binary(answer == c.task["target"].text()).answer(answer)])
//!     }
//! }
//!
//! #[no_mangle]
//! fn wevalr_plugin() -> Box<dyn Plugin> {
//!     Box::new(Mine)
//! }
//! ```
//!
//! Build it, then append the manifest (`encoding = "json"`): wevalr plugin build.
//!
//! ```text
//! rustc --edition 2021 --target wasm32-unknown-unknown --crate-type cdylib -C opt-level=3 -C lto
//!   -C codegen-units=1 -C panic=abort -C strip=symbols -C linker=wasm-ld-14 src/lib.rs -o plugin.wasm
//! ```
//!
//! With more units than one the same sources give different bytes now and then.
//!
//! An [`Error`] is the plugin's own failure; a panic is a trap, reported with its text. Reading never fails:
//! what is not there is null, whose text is "" and whose number is 0.

#![allow(dead_code)] // as a module: a plugin uses a part

pub mod env;
pub mod json;

use std::alloc::{GlobalAlloc, Layout, System};

pub use env::{Env, EnvError, Handle};
pub use json::Json;

#[link(wasm_import_module = "wevalr_v1")]
extern "C" {
    fn log_enabled(level: i32) -> i32;
    #[link_name = "log"]
    fn host_log(level: i32, ptr: *const u8, len: usize) -> i32;
    fn fail(ptr: *const u8, len: usize) -> i32;
    fn asset_len(name: *const u8, len: usize) -> i32;
    fn asset_read(name: *const u8, len: usize, ptr: *mut u8, cap: usize) -> i32;
}

extern "Rust" {
    /// The plugin's own: makes what answers the calls.
    #[allow(improper_ctypes)]
    #[link_name = "wevalr_plugin"]
    fn make_plugin() -> Box<dyn Plugin>;
}

// Says why the guest is about to trap where memory runs out.
struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

impl Memory {
    fn told(p: *mut u8) -> *mut u8 {
        if p.is_null() {
            let why = "out of memory";
            unsafe { fail(why.as_ptr(), why.len()) };
        }
        p
    }
}

unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        Memory::told(System.alloc(l))
    }
    unsafe fn alloc_zeroed(&self, l: Layout) -> *mut u8 {
        Memory::told(System.alloc_zeroed(l))
    }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, size: usize) -> *mut u8 {
        Memory::told(System.realloc(p, l, size))
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        System.dealloc(p, l)
    }
}

/// The statuses of imports; treat an unknown one as INTERNAL.
pub mod status {
    pub const DENIED: i32 = -1;
    pub const INVALID: i32 = -2;
    pub const TOO_LARGE: i32 = -3;
    pub const CANCELLED: i32 = -4;
    pub const DEADLINE: i32 = -5;
    pub const SERVER_EXITED: i32 = -6;
    pub const PEER_ERROR: i32 = -7;
    pub const WORKER_LOST: i32 = -8;
    pub const LIMIT: i32 = -9;
    pub const NOT_FOUND: i32 = -10;
    pub const INTERNAL: i32 = -11;
    pub const CONNECTION_LOST: i32 = -12;
    pub const STALLED: i32 = -13;
    pub const PROTOCOL: i32 = -14;

    /// A status as the code of a failure.
    pub fn name(status: i32) -> &'static str {
        const NAMES: [&str; 14] = [
            "denied", "invalid", "too_large", "cancelled", "deadline", "server_exited", "peer_error", "worker_lost",
            "limit", "not_found", "internal", "connection_lost", "stalled", "protocol",
        ];
        NAMES.get((-1 - status) as usize).copied().unwrap_or("internal")
    }
}

/// Levels of [`log`].
#[derive(Clone, Copy)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// Logs a text.
pub fn log(level: Level, text: &str) {
    unsafe {
        if log_enabled(level as i32) > 0 {
            host_log(level as i32, text.as_ptr(), text.len());
        }
    }
}

/// A file that travels in the module, or a status.
pub fn asset(name: &str) -> Result<Vec<u8>, i32> {
    let n = unsafe { asset_len(name.as_ptr(), name.len()) };
    if n < 0 {
        return Err(n);
    }
    let mut b = vec![0; n as usize];
    let got = unsafe { asset_read(name.as_ptr(), name.len(), b.as_mut_ptr(), b.len()) };
    if got == n {
        Ok(b)
    } else {
        Err(got.min(status::INTERNAL))
    }
}

/// A failure that the plugin declares itself.
#[derive(Debug, Default)]
pub struct Error {
    /// snake_case and stable
    pub code: String,
    pub message: String,
    /// The same call may succeed another time.
    pub retryable: bool,
    /// An object, or null.
    pub data: Json,
}

impl Error {
    pub fn new(code: &str, message: &str) -> Error {
        Error { code: code.into(), message: message.into(), ..Error::default() }
    }

    fn unsupported(what: &str) -> Error {
        Error::new("unsupported", what)
    }
}

/// One score. `value` None is skipped, which is not 0; `name` "" is the scorer's own.
#[derive(Debug, Default)]
pub struct Score {
    pub name: String,
    pub value: Option<f64>,
    pub label: String,
    pub explanation: String,
    pub answer: String,
    /// An object, or null.
    pub metadata: Json,
}

impl Score {
    pub fn number(value: f64) -> Score {
        Score { value: Some(value), ..Score::default() }
    }

    pub fn binary(ok: bool) -> Score {
        Score::number(if ok { 1.0 } else { 0.0 })
    }

    pub fn skipped(why: &str) -> Score {
        Score { explanation: why.into(), ..Score::default() }
    }

    pub fn name(mut self, s: &str) -> Score {
        self.name = s.into();
        self
    }

    pub fn label(mut self, s: &str) -> Score {
        self.label = s.into();
        self
    }

    pub fn explanation(mut self, s: &str) -> Score {
        self.explanation = s.into();
        self
    }

    pub fn answer(mut self, s: &str) -> Score {
        self.answer = s.into();
        self
    }

    pub fn metadata(mut self, object: Json) -> Score {
        self.metadata = object;
        self
    }

    fn json(self) -> Json {
        let mut m = Vec::new();
        let mut text = |k: &str, s: String| {
            if !s.is_empty() {
                m.push((k.to_string(), Json::Text(s)));
            }
        };
        text("name", self.name);
        text("label", self.label);
        text("explanation", self.explanation);
        text("answer", self.answer);
        m.push(("value".into(), self.value.map_or(Json::Null, Json::Number)));
        if !self.metadata.is_null() {
            m.push(("metadata".into(), self.metadata));
        }
        Json::Object(m)
    }
}

/// A call of the host: what is not part of the operation is null.
#[derive(Debug, Default)]
pub struct Call {
    pub scorer: String,
    pub seed: i64,
    pub index: i64,
    pub task: Json,
    pub episode: Json,
    /// All finished rollouts of the task, in a group scorer.
    pub episodes: Json,
}

/// What a driven rollout came to. The handles must be open; `selected` is a position in `episodes`.
#[derive(Default)]
pub struct Rollout {
    pub episodes: Vec<Handle>,
    pub selected: usize,
    /// Those of the manifest's scorers of kind "driver".
    pub scores: Vec<Score>,
}

/// What a plugin can do: override what the manifest declares.
pub trait Plugin {
    /// Takes the options, before any other call.
    fn init(&mut self, _options: &Json) -> Result<(), Error> {
        Ok(())
    }
    /// How many tasks there are, asked after init; None: this plugin has no tasks.
    fn task_count(&self) -> Option<usize> {
        None
    }
    /// Task i: `{"key": …, "data": {…}, "target": …}`.
    fn task(&self, _i: usize) -> Result<Json, Error> {
        Err(Error::unsupported("this plugin has no tasks"))
    }
    fn rollout(&mut self, _env: &Env, _c: &Call) -> Result<Rollout, Error> {
        Err(Error::unsupported("this plugin drives no rollouts"))
    }
    /// The names in the manifest: score gets no others.
    fn scorers(&self) -> &[&str] {
        &[]
    }
    /// The names in the manifest: score_group gets no others.
    fn group_scorers(&self) -> &[&str] {
        &[]
    }
    fn score(&mut self, _c: &Call) -> Result<Vec<Score>, Error> {
        Err(Error::unsupported("this plugin has no scorers"))
    }
    fn score_group(&mut self, _c: &Call) -> Result<Vec<Score>, Error> {
        Err(Error::unsupported("this plugin has no group scorers"))
    }
}

/// The module's state: one for its whole life.
struct Guest {
    plugin: Box<dyn Plugin>,
    request: Vec<u8>,
    response: Vec<u8>,
}

const MAX_REQUEST: usize = 64 << 20;

/// A page of tasks ends after this many bytes: a response has a limit.
const PAGE: usize = 1 << 20;

impl Guest {
    fn new(plugin: Box<dyn Plugin>) -> Guest {
        std::panic::set_hook(Box::new(|info| {
            let text = info.to_string();
            unsafe { fail(text.as_ptr(), text.len()) };
        }));
        Guest { plugin, request: Vec::new(), response: Vec::new() }
    }

    fn buf(&mut self, len: usize) -> *mut u8 {
        if len > MAX_REQUEST {
            return std::ptr::null_mut();
        }
        self.request = Vec::new();
        self.response = Vec::new();
        if self.request.try_reserve_exact(len.max(1)).is_err() {
            return std::ptr::null_mut();
        }
        self.request.resize(len.max(1), 0);
        self.request.as_mut_ptr()
    }

    fn call(&mut self, op: i32, len: usize) -> u64 {
        if len > self.request.len() {
            return 0;
        }
        let request = std::mem::take(&mut self.request);
        let result = match json::parse(&request[..len]) {
            Some(q @ Json::Object(_)) => self.dispatch(op, q),
            _ => Err(Error::new("bad_request", "the request cannot be read")),
        };
        drop(request);
        let out = match result {
            Ok(ok) => json::object([("ok", ok)]),
            Err(e) => {
                let mut m = vec![("code".to_string(), Json::Text(e.code)), ("message".into(), Json::Text(e.message))];
                if e.retryable {
                    m.push(("retryable".into(), Json::Bool(true)));
                }
                if !e.data.is_null() {
                    m.push(("data".into(), e.data));
                }
                json::object([("err", Json::Object(m))])
            }
        };
        self.response.clear();
        out.write(&mut self.response);
        (self.response.as_ptr() as u64) << 32 | self.response.len() as u64
    }

    fn dispatch(&mut self, op: i32, mut q: Json) -> Result<Json, Error> {
        let c = Call {
            scorer: q["scorer"].text().into(),
            seed: q["seed"].int(),
            index: q["index"].int(),
            task: q.take("task"),
            episode: q.take("episode"),
            episodes: q.take("episodes"),
        };
        let scores = |list: Vec<Score>| Json::Array(list.into_iter().map(Score::json).collect());
        match op {
            1 => {
                self.plugin.init(&q["options"])?;
                Ok(match self.plugin.task_count() {
                    Some(n) => json::object([("tasks", Json::Int(n as i64))]),
                    None => json::object([]),
                })
            }
            2 => self.tasks(&q),
            3 => {
                let r = self.plugin.rollout(&Env(()), &c)?;
                Ok(json::object([
                    ("episodes", Json::Array(r.episodes.iter().map(|h| Json::Int(h.0.into())).collect())),
                    ("selected", Json::Int(r.selected as i64)),
                    ("scores", scores(r.scores)),
                ]))
            }
            4 if self.plugin.scorers().contains(&c.scorer.as_str()) => Ok(json::object([("scores", scores(self.plugin.score(&c)?))])),
            5 if self.plugin.group_scorers().contains(&c.scorer.as_str()) => Ok(json::object([("scores", scores(self.plugin.score_group(&c)?))])),
            _ => Err(Error::unsupported("this plugin has no such scorer or operation")),
        }
    }

    fn tasks(&mut self, q: &Json) -> Result<Json, Error> {
        let n = self.plugin.task_count().ok_or_else(|| Error::unsupported("this plugin has no tasks"))?;
        let cursor = q["cursor"].text();
        let mut i = if cursor.is_empty() { 0 } else { cursor.parse().unwrap_or(usize::MAX) };
        if i > n {
            return Err(Error::new("bad_cursor", "bad cursor"));
        }
        let end = n.min(i.saturating_add(q["limit"].int().max(1) as usize));
        let (mut list, mut size) = (Vec::new(), 0);
        while i < end && size < PAGE {
            let task = self.plugin.task(i)?;
            let mut text = Vec::new();
            task.write(&mut text);
            size += text.len();
            list.push(task);
            i += 1;
        }
        let next = if i < n { i.to_string() } else { String::new() };
        Ok(json::object([("tasks", Json::Array(list)), ("next", Json::Text(next))]))
    }
}

// One guest a module, and one call at a time.
struct Cell(std::cell::UnsafeCell<Option<Guest>>);
unsafe impl Sync for Cell {}
static GUEST: Cell = Cell(std::cell::UnsafeCell::new(None));

fn guest() -> &'static mut Guest {
    unsafe { (*GUEST.0.get()).get_or_insert_with(|| Guest::new(make_plugin())) }
}

#[no_mangle]
pub extern "C" fn wevalr_abi_1_0() {}

#[no_mangle]
pub extern "C" fn wevalr_buf(len: usize) -> *mut u8 {
    guest().buf(len)
}

#[no_mangle]
pub extern "C" fn wevalr_call(op: i32, len: usize) -> u64 {
    guest().call(op, len)
}
