//! The env-server, in a rollout.

use super::{json, status, Error, Json};

#[link(wasm_import_module = "wevalr_v1")]
extern "C" {
    fn env_start(ptr: *const u8, len: usize) -> i32;
    fn env_await(timeout_ms: i32) -> i32;
    fn env_poll(handle: i32) -> i32;
    fn env_cancel(handle: i32) -> i32;
    fn env_take(handle: i32, ptr: *mut u8, cap: usize) -> i32;
    fn env_close(handle: i32) -> i32;
}

/// The env-server of one rollout.
pub struct Env(pub(super) ());

/// One call to the env-server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Handle(pub(super) i32);

/// Why a call has no episode. `server` holds the facts of an env-server that has exited: generation, code or
/// signal, uptime_s, log, tail; else null.
#[derive(Debug, Default)]
pub struct EnvError {
    pub status: i32,
    pub source: String,
    pub kind: String,
    pub message: String,
    pub server: Json,
}

impl EnvError {
    fn new(status: i32) -> EnvError {
        EnvError { status, ..EnvError::default() }
    }
}

/// The failure that passes it on, with its facts.
impl From<EnvError> for Error {
    fn from(e: EnvError) -> Error {
        let code = status::name(e.status);
        let mut out = Error::new(code, if e.message.is_empty() { code } else { &e.message });
        if !e.source.is_empty() {
            let mut m = vec![("source".to_string(), Json::Text(e.source)), ("kind".into(), Json::Text(e.kind))];
            if !e.server.is_null() {
                m.push(("server".into(), e.server));
            }
            out.data = Json::Object(m);
        }
        out
    }
}

impl Env {
    /// Makes a call with `{"task_data": …, "sampling"?: …}` and does not wait for it.
    pub fn start(&self, request: &Json) -> Result<Handle, EnvError> {
        let mut text = Vec::new();
        request.write(&mut text);
        match unsafe { env_start(text.as_ptr(), text.len()) } {
            h if h < 0 => Err(EnvError::new(h)),
            h => Ok(Handle(h)),
        }
    }

    /// Gives each finished call once; -1 waits without limit, 0 only looks. DEADLINE: none in time,
    /// NOT_FOUND: none is open.
    pub fn wait(&self, timeout_ms: i32) -> Result<Handle, EnvError> {
        match unsafe { env_await(timeout_ms) } {
            h if h < 0 => Err(EnvError::new(h)),
            h => Ok(Handle(h)),
        }
    }

    /// Makes one call and waits for its episode. It takes other calls out of wait's sequence, so use one way
    /// or the other. After an error there is no handle: it is closed.
    pub fn run(&self, request: &Json) -> Result<(Handle, Json), EnvError> {
        let h = self.start(request)?;
        while !h.done() {
            match self.wait(-1) {
                Err(e) if e.status != status::NOT_FOUND => return Err(e),
                _ => {}
            }
        }
        match h.take() {
            Ok(episode) => Ok((h, episode)),
            Err(e) => {
                h.close();
                Err(e)
            }
        }
    }
}

impl Handle {
    /// Whether the call has finished; a closed one has.
    pub fn done(self) -> bool {
        unsafe { env_poll(self.0) != 0 }
    }

    /// Asks that the call end: it then finishes as CANCELLED, unless its reply came first.
    pub fn cancel(self) {
        unsafe { env_cancel(self.0) };
    }

    /// Gives the handle back; its episode can then no longer be part of the rollout.
    pub fn close(self) {
        unsafe { env_close(self.0) };
    }

    /// The episode of a finished call; it may be repeated.
    pub fn take(self) -> Result<Json, EnvError> {
        let n = unsafe { env_take(self.0, std::ptr::null_mut(), 0) };
        let mut b = vec![0; n.max(0) as usize];
        let n = if n < 0 { n } else { unsafe { env_take(self.0, b.as_mut_ptr(), b.len()) } };
        if n < 0 {
            return Err(EnvError::new(n));
        }
        let mut reply = json::parse(&b).ok_or_else(|| EnvError::new(status::INTERNAL))?;
        let episode = reply.take("ok");
        if !episode.is_null() {
            return Ok(episode);
        }
        let mut e = reply.take("err");
        Err(EnvError {
            status: if e.is_null() { status::INTERNAL } else { e["status"].int() as i32 },
            source: e["source"].text().into(),
            kind: e["kind"].text().into(),
            message: e["message"].text().into(),
            server: e.take("server"),
        })
    }
}
