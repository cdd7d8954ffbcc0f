// wevalr.ts: what the author of a wevalr plugin in AssemblyScript imports. It depends on nothing.
//
//   import { Call, Plugin, Score, register } from "./wevalr";
//   export { wevalr_abi_1_0, wevalr_buf, wevalr_call } from "./wevalr";
//
//   class Mine extends Plugin {
//     scorers(): string[] { return ["correct"]; }
//     score(c: Call): void {
//       const answer = c.episode.get("completion").text;
//       const s = Score.binary(answer == c.task.get("target").text);
//       s.answer = answer;
//       c.add(s);
//     }
//   }
//   register(new Mine());
//
// Build it, then append the manifest (encoding = "json"): wevalr plugin build.
//
//   asc assembly/index.ts -O3 --runtime incremental --exportStart _initialize --enable bulk-memory
//     --use abort=assembly/wevalr/abort -o plugin.wasm
//
// There are no exceptions: Call.fail makes the call's answer the plugin's own failure, and a failed
// assertion or an index out of range is a trap, reported with its text. Reading never fails: what is not
// there is the null value, whose text is "", whose number is 0.

@external("wevalr_v1", "log_enabled") declare function hostLogEnabled(level: i32): i32;
@external("wevalr_v1", "log") declare function hostLog(level: i32, ptr: usize, len: usize): i32;
@external("wevalr_v1", "fail") declare function hostFail(ptr: usize, len: usize): i32;
@external("wevalr_v1", "asset_len") declare function hostAssetLen(name: usize, len: usize): i32;
@external("wevalr_v1", "asset_read") declare function hostAssetRead(name: usize, len: usize, ptr: usize, cap: usize): i32;
@external("wevalr_v1", "env_start") declare function hostEnvStart(ptr: usize, len: usize): i32;
@external("wevalr_v1", "env_await") declare function hostEnvAwait(timeoutMS: i32): i32;
@external("wevalr_v1", "env_poll") declare function hostEnvPoll(handle: i32): i32;
@external("wevalr_v1", "env_cancel") declare function hostEnvCancel(handle: i32): i32;
@external("wevalr_v1", "env_take") declare function hostEnvTake(handle: i32, ptr: usize, cap: usize): i32;
@external("wevalr_v1", "env_close") declare function hostEnvClose(handle: i32): i32;

// Statuses of imports; treat an unknown one as Internal.
export namespace Status {
  export const Denied = -1;
  export const Invalid = -2;
  export const TooLarge = -3;
  export const Cancelled = -4;
  export const Deadline = -5;
  export const ServerExited = -6;
  export const PeerError = -7;
  export const WorkerLost = -8;
  export const Limit = -9;
  export const NotFound = -10;
  export const Internal = -11;
  export const ConnectionLost = -12;
  export const Stalled = -13;
  export const Protocol = -14;
}

// statusName is a status as the code of a failure.
export function statusName(status: i32): string {
  const names: string[] = ["denied", "invalid", "too_large", "cancelled", "deadline", "server_exited", "peer_error",
    "worker_lost", "limit", "not_found", "internal", "connection_lost", "stalled", "protocol"];
  return status < 0 && status > -15 ? names[-status - 1] : "internal";
}

export namespace Level {
  export const Debug = 0;
  export const Info = 1;
  export const Warn = 2;
  export const Error = 3;
}

// -- reading JSON --------------------------------------------------------------------------------------------

export enum Kind { Null, Bool, Number, String, Array, Object }

// Value is a JSON value as it was read.
export class Value {
  kind: Kind = Kind.Null;
  // raw is a number as it was written.
  raw: string = "";
  bool: bool = false;
  // items of an array, or the members of an object in the order of keys.
  items: Value[] = [];
  keys: string[] = [];

  // The bytes of a string; they are decoded when they are first asked for: most never are.
  private decoded: string | null = null;
  constructor(private source: ArrayBuffer | null = null, private at: usize = 0, private size: usize = 0) {
    if (source) this.kind = Kind.String;
  }

  // text is that of a string, "" for anything else.
  get text(): string {
    if (!this.source) return "";
    let s = this.decoded;
    if (!s) {
      s = String.UTF8.decodeUnsafe(this.at, this.size);
      this.decoded = s;
    }
    return s;
  }

  get isNull(): bool { return this.kind == Kind.Null; }
  get length(): i32 { return this.items.length; }

  get number(): f64 { return this.kind == Kind.Number ? parseNumber(this.raw) : 0; }

  // int is an integer, exact up to 64 bits; of other numbers their whole part.
  get int(): i64 {
    if (this.kind != Kind.Number) return 0;
    const minus = this.raw.charCodeAt(0) == 0x2d;
    let n: i64 = 0;
    for (let i = i32(minus); i < this.raw.length; i++) {
      const c = this.raw.charCodeAt(i);
      if (c < 0x30 || c > 0x39) return i64(this.number);
      n = n * 10 + (c - 0x30);
    }
    return minus ? -n : n;
  }

  // get is a member by name, the null value where there is none.
  get(name: string): Value {
    const i = this.keys.indexOf(name);
    return i < 0 ? new Value() : this.items[i];
  }
}

// parseNumber reads a decimal number, to the nearest double; NaN if s is not one. F64.parseFloat of the
// standard library is wrong by powers of ten beyond 1e37.
export function parseNumber(s: string): f64 {
  const minus = s.length > 0 && s.charCodeAt(0) == 0x2d;
  let i = i32(minus);
  let m: u64 = 0;
  let digits = 0, after = 0, exp = 0, frac = false;
  for (; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (c == 0x2e && !frac) { frac = true; continue; }
    if (c < 0x30 || c > 0x39) break;
    digits++;
    after += i32(frac);
    m = m < 1000000000000000000 ? m * 10 + (c - 0x30) : u64.MAX_VALUE;
  }
  const end = i;
  if (digits && i < s.length && (s.charCodeAt(i) | 32) == 0x65) {
    let down = false, n = 0;
    if (++i < s.length && (s.charCodeAt(i) == 0x2d || s.charCodeAt(i) == 0x2b)) down = s.charCodeAt(i++) == 0x2d;
    for (; i < s.length && s.charCodeAt(i) >= 0x30 && s.charCodeAt(i) <= 0x39; i++, n++) {
      if (exp < 100000) exp = exp * 10 + (s.charCodeAt(i) - 0x30);
    }
    if (!n) return NaN;
    if (down) exp = -exp;
  }
  if (!digits || i != s.length) return NaN;
  let f: f64 = 0;
  const last = exp - after; // what the last digit is worth
  if (m >> 53 == 0 && last >= -22 && last <= 22) {
    let tens: f64 = 1; // exact up to 1e22
    for (let k = abs(last); k > 0; k--) tens *= 10;
    f = last < 0 ? <f64>m / tens : <f64>m * tens;
  } else if (m) f = exactly(s.substring(i32(minus), end), last + digits - 1);
  return minus ? -f : f;
}

// exactly reads digits, the first of them worth 10^exp, by way of an exact decimal number in base 1e9:
// limb[POINT - 1] are the units.
const LIMBS = 160;
const POINT = 36;

function scale(limb: StaticArray<u32>, e: i32): void {
  let carry: u64 = 0;
  for (let k = 0; e > 0; e -= k) {
    k = min(e, 29);
    carry = 0;
    for (let i = LIMBS - 1; i >= 0; i--) {
      carry += <u64>limb[i] << k;
      limb[i] = u32(carry % 1000000000);
      carry /= 1000000000;
    }
  }
  for (let k = 0; e < 0; e += k) {
    k = min(-e, 29);
    carry = 0;
    for (let i = 0; i < LIMBS; i++) {
      carry = carry * 1000000000 + limb[i];
      limb[i] = u32(carry >> k);
      carry &= (1 << k) - 1;
    }
  }
}

function exactly(digits: string, exp: i32): f64 {
  const limb = new StaticArray<u32>(LIMBS);
  for (let j = 0; j < digits.length; j++) {
    if (digits.charCodeAt(j) == 0x2e) continue;
    let d: u32 = digits.charCodeAt(j) - 0x30;
    const at = POINT * 9 - 1 - exp--;
    if (at < 0 && d) return Infinity;
    if (at < 0 || at >= LIMBS * 9) continue;
    for (let k = at % 9; k < 8; k++) d *= 10;
    limb[at / 9] += d;
  }
  let e = 0, i = 0;
  while (i < LIMBS && !limb[i]) i++;
  if (i == LIMBS) return 0;
  for (let big = true; big;) { // down to less than 1e18
    big = false;
    for (i = 0; i < POINT - 2; i++) if (limb[i]) big = true;
    if (big) { scale(limb, -29); e += 29; }
  }
  let m: u64 = 0;
  for (;;) {
    m = <u64>limb[POINT - 2] * 1000000000 + limb[POINT - 1];
    if (m >> 53) { scale(limb, -1); e++; continue; }
    if (m >> 52 || e <= -1074) break;
    const k = m >> 23 || e < -1045 ? 1 : 29;
    scale(limb, k);
    e -= k;
  }
  let more = false;
  for (i = POINT + 1; i < LIMBS; i++) if (limb[i]) more = true;
  if (limb[POINT] > 500000000 || (limb[POINT] == 500000000 && (more || (m & 1)))) m++;
  if (m >> 53) { m >>= 1; e++; }
  if (e > 971) return Infinity;
  return reinterpret<f64>(m >> 52 ? (u64(e + 1075) << 52) | (m & 0xfffffffffffff) : m);
}

const MAX_DEPTH = 128;

// Reader reads JSON out of bytes, in which it resolves the escapes of strings: they are never shorter than
// what they stand for.
class Reader {
  bad: bool = false;
  depth: i32 = 0;
  p: usize;
  end: usize;
  // The place of the string that was read last.
  start: usize = 0;
  size: usize = 0;

  constructor(public source: ArrayBuffer, n: u32) {
    this.p = changetype<usize>(source);
    this.end = this.p + n;
  }

  peek(): i32 {
    while (this.p < this.end) {
      const c = load<u8>(this.p);
      if (c != 0x20 && (c < 9 || c > 13)) return c;
      this.p++;
    }
    return -1;
  }

  hex4(): u32 {
    let v: u32 = 0;
    for (let i = 0; i < 4; i++) {
      const c: u32 = this.p < this.end ? load<u8>(this.p++) : 0;
      const l = c | 32;
      if (c >= 0x30 && c <= 0x39) v = (v << 4) | (c - 0x30);
      else if (l >= 0x61 && l <= 0x66) v = (v << 4) | (l - 0x57);
      else this.bad = true;
    }
    return v;
  }

  string(): void {
    this.start = ++this.p;
    while (this.p < this.end && load<u8>(this.p) != 0x22 && load<u8>(this.p) != 0x5c) this.p++;
    let to = this.p;
    while (this.p < this.end && load<u8>(this.p) != 0x22) {
      let c: u32 = load<u8>(this.p++);
      if (c == 0x5c) {
        c = this.p < this.end ? load<u8>(this.p++) : 0;
        switch (c) {
          case 0x22: case 0x5c: case 0x2f: break;
          case 0x62: c = 8; break;
          case 0x66: c = 12; break;
          case 0x6e: c = 10; break;
          case 0x72: c = 13; break;
          case 0x74: c = 9; break;
          case 0x75:
            c = this.hex4();
            if (c >> 10 == 0x36 && this.end - this.p >= 6 && load<u16>(this.p) == 0x755c) {
              this.p += 2;
              c = 0x10000 + ((c & 0x3ff) << 10) + (this.hex4() & 0x3ff);
            }
            if (c >> 11 == 0x1b) c = 0xfffd;
            if (c >= 0x80) {
              if (c < 0x800) store<u8>(to++, 0xc0 | (c >> 6));
              else {
                if (c < 0x10000) store<u8>(to++, 0xe0 | (c >> 12));
                else { store<u8>(to++, 0xf0 | (c >> 18)); store<u8>(to++, 0x80 | ((c >> 12) & 63)); }
                store<u8>(to++, 0x80 | ((c >> 6) & 63));
              }
              c = 0x80 | (c & 63);
            }
            break;
          default: this.bad = true;
        }
      }
      store<u8>(to++, c);
    }
    if (this.p >= this.end) this.bad = true;
    this.p++;
    this.size = to - this.start;
  }

  word(text: string, v: Value, kind: Kind): void {
    for (let i = 0; i < text.length; i++) {
      if (this.p >= this.end || load<u8>(this.p++) != text.charCodeAt(i)) this.bad = true;
    }
    v.kind = kind;
  }

  value(): Value {
    const c = this.peek();
    if (c == 0x22 && !this.bad) {
      this.string();
      return new Value(this.source, this.start, this.size);
    }
    const v = new Value();
    if (++this.depth > MAX_DEPTH) this.bad = true;
    if (this.bad) return v;
    if (c == 0x7b || c == 0x5b) this.container(v, c == 0x7b);
    else if (c == 0x74) { this.word("true", v, Kind.Bool); v.bool = true; }
    else if (c == 0x66) this.word("false", v, Kind.Bool);
    else if (c == 0x6e) this.word("null", v, Kind.Null);
    else {
      const start = this.p;
      while (this.p < this.end) {
        const d = load<u8>(this.p);
        if ((d < 0x30 || d > 0x39) && d != 0x2d && d != 0x2b && d != 0x2e && (d | 32) != 0x65) break;
        this.p++;
      }
      v.kind = Kind.Number;
      v.raw = String.UTF8.decodeUnsafe(start, this.p - start);
      if (this.p == start) this.bad = true;
    }
    this.depth--;
    return v;
  }

  container(v: Value, object: bool): void {
    const end = object ? 0x7d : 0x5d;
    v.kind = object ? Kind.Object : Kind.Array;
    this.p++;
    for (let c = this.peek(); !this.bad && c != end; c = this.peek()) {
      if (v.items.length) {
        if (c != 0x2c) this.bad = true;
        this.p++;
      }
      if (object) {
        if (this.peek() != 0x22) this.bad = true;
        if (this.bad) return;
        this.string();
        v.keys.push(String.UTF8.decodeUnsafe(this.start, this.size));
        if (this.peek() != 0x3a) this.bad = true;
        this.p++;
      }
      if (this.bad) return;
      v.items.push(this.value());
    }
    this.p++;
  }
}

// parse reads a JSON text, which it changes; null if it is not one.
function parse(b: ArrayBuffer, n: u32): Value | null {
  const r = new Reader(b, n);
  const v = r.value();
  return r.bad || r.peek() >= 0 ? null : v;
}

// -- writing JSON --------------------------------------------------------------------------------------------

// Json is a JSON text that grows. Commas come by themselves; every method gives the same object back.
export class Json {
  private bytes: ArrayBuffer = new ArrayBuffer(128);
  private comma: bool = false;
  length: i32 = 0;

  // pointer is where its length bytes of UTF-8 are.
  get pointer(): usize { return changetype<usize>(this.bytes); }

  // room gives the place of n more bytes.
  private room(n: i32): usize {
    if (this.length + n > this.bytes.byteLength) {
      const b = new ArrayBuffer(max(this.length + n, min(this.bytes.byteLength * 2, this.bytes.byteLength + (1 << 20))));
      memory.copy(changetype<usize>(b), this.pointer, this.length);
      this.bytes = b;
    }
    this.length += n;
    return this.pointer + this.length - n;
  }

  private byte(c: i32): void { store<u8>(this.room(1), c); }

  // part writes characters as they are; halves of characters become U+FFFD.
  private part(s: string, from: i32, to: i32): void {
    if (to == from) return;
    const p = changetype<usize>(s) + (from << 1);
    let n = 0;
    for (let i = from; i < to; i++) { // whole characters have 4 bytes: 3 + 1 is enough room
      const c = s.charCodeAt(i);
      n += c < 0x80 ? 1 : c < 0x800 ? 2 : 3;
    }
    const had = this.length;
    const at = this.room(n);
    this.length = had + i32(String.UTF8.encodeUnsafe(p, to - from, at, false, String.UTF8.ErrorMode.REPLACE));
  }

  private item(s: string, comma: bool = true): Json {
    if (this.comma) this.byte(0x2c);
    this.part(s, 0, s.length);
    this.comma = comma;
    return this;
  }

  open(): Json { return this.item("{", false); }
  openList(): Json { return this.item("[", false); }
  close(): Json { this.comma = false; return this.item("}"); }
  closeList(): Json { this.comma = false; return this.item("]"); }
  null(): Json { return this.item("null"); }
  bool(v: bool): Json { return this.item(v ? "true" : "false"); }
  int(v: i64): Json { return this.item(v.toString()); }
  // number writes NaN and Infinity as such: the host refuses them.
  number(v: f64): Json { return this.item(v == Math.trunc(v) && Math.abs(v) < 9e15 ? i64(v).toString() : v.toString()); }

  text(s: string): Json {
    this.item('"');
    let from = 0;
    for (let i = 0; i < s.length; i++) {
      const c = s.charCodeAt(i);
      if (c >= 32 && c != 0x22 && c != 0x5c) continue;
      this.part(s, from, i);
      from = i + 1;
      this.byte(0x5c);
      if (c >= 32) { this.byte(c); continue; }
      this.byte(0x75);
      this.byte(0x30);
      this.byte(0x30);
      this.byte(0x30 + (c >> 4));
      this.byte((c & 15) < 10 ? 0x30 + (c & 15) : 0x57 + (c & 15));
    }
    this.part(s, from, s.length);
    this.byte(0x22);
    return this;
  }

  // json writes another one as a value.
  json(j: Json): Json {
    this.item("");
    const n = j.length;
    memory.copy(this.room(n), j.pointer, n);
    return this;
  }

  // key begins a member; its value must follow.
  key(name: string): Json {
    this.text(name);
    this.byte(0x3a);
    this.comma = false;
    return this;
  }

  // value writes what was read.
  value(v: Value): Json {
    switch (v.kind) {
      case Kind.Null: return this.null();
      case Kind.Bool: return this.bool(v.bool);
      case Kind.Number: return this.item(v.raw);
      case Kind.String: return this.text(v.text);
    }
    const object = v.kind == Kind.Object;
    object ? this.open() : this.openList();
    for (let i = 0; i < v.items.length; i++) {
      if (object) this.key(v.keys[i]);
      this.value(v.items[i]);
    }
    return object ? this.close() : this.closeList();
  }
}

// utf8 encodes; halves of characters become U+FFFD.
function utf8(s: string): ArrayBuffer {
  return String.UTF8.encode(s, false, String.UTF8.ErrorMode.REPLACE);
}

// -- log, assets, traps --------------------------------------------------------------------------------------

// log logs a text at a level.
export function log(level: i32, text: string): void {
  if (hostLogEnabled(level) <= 0) return;
  const b = utf8(text);
  hostLog(level, changetype<usize>(b), b.byteLength);
}

// asset gives a file that travels in the module, null if there is none of the name.
export function asset(name: string): ArrayBuffer | null {
  const key = utf8(name);
  const n = hostAssetLen(changetype<usize>(key), key.byteLength);
  if (n < 0) return null;
  const b = new ArrayBuffer(n);
  return hostAssetRead(changetype<usize>(key), key.byteLength, changetype<usize>(b), n) == n ? b : null;
}

// panic ends the call as a trap.
export function panic(why: string): void {
  const b = utf8(why);
  hostFail(changetype<usize>(b), b.byteLength);
  unreachable();
}

let aborting = false;

// abort is what the compiler calls for failed assertions: --use abort=assembly/wevalr/abort.
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  if (aborting) unreachable(); // out of memory, again
  aborting = true;
  panic((message ? message : "abort") + " at " + (file ? file : "?") + ":" + line.toString() + ":" + column.toString());
}

// -- calls ---------------------------------------------------------------------------------------------------

// Score is one score. name "" is the scorer's own; skipped is no score, which is not 0.
export class Score {
  name: string = "";
  label: string = "";
  explanation: string = "";
  answer: string = "";
  metadata: Json | null = null;
  isSkipped: bool = false;
  constructor(public value: f64) {}

  static binary(ok: bool): Score { return new Score(ok ? 1 : 0); }
  static skipped(why: string): Score {
    const s = new Score(0);
    s.isSkipped = true;
    s.explanation = why;
    return s;
  }

  write(w: Json): void {
    w.open();
    if (this.name.length) w.key("name").text(this.name);
    w.key("value");
    this.isSkipped ? w.null() : w.number(this.value);
    if (this.label.length) w.key("label").text(this.label);
    if (this.explanation.length) w.key("explanation").text(this.explanation);
    if (this.answer.length) w.key("answer").text(this.answer);
    const m = this.metadata;
    if (m) w.key("metadata").json(m);
    w.close();
  }
}

// Call is a call of the host: what it asks, and what the plugin answers.
export class Call {
  scorer: string = "";
  seed: i64 = 0;
  index: i64 = 0;
  task: Value = new Value();
  episode: Value = new Value();
  episodes: Value = new Value();
  options: Value = new Value();

  scores: Score[] = [];
  handles: i32[] = [];
  selected: i32 = 0;
  code: string = "";
  message: string = "";
  retryable: bool = false;
  data: Json | null = null;

  add(s: Score): void { this.scores.push(s); }

  // fail makes the call's answer the plugin's own failure; return after it.
  fail(code: string, message: string): void {
    this.code = code;
    this.message = message;
  }

  // select makes the episode of an open handle part of the rollout, as its selected one so far.
  select(handle: i32): void {
    this.selected = this.handles.length;
    this.handles.push(handle);
  }

  // failEnv passes a failed call to the env-server on, with its facts.
  failEnv(r: Reply): void {
    if (r.source.length) {
      const w = new Json().open().key("source").text(r.source).key("kind").text(r.kind);
      if (!r.server.isNull) w.key("server").value(r.server);
      this.data = w.close();
    }
    this.fail(statusName(r.status), r.message.length ? r.message : statusName(r.status));
  }
}

// Plugin says what a plugin can do: override what the manifest declares.
export class Plugin {
  init(c: Call): void {}
  // taskCount is how many tasks there are, asked after init.
  taskCount(): i64 { return -1; }
  // task writes task i: {"key": …, "data": {…}, "target": …}.
  task(w: Json, i: i64): void {}
  rollout(c: Call): void { c.fail("unsupported", "this plugin drives no rollouts"); }
  // scorers and groupScorers are the names in the manifest: score and scoreGroup get no others.
  scorers(): string[] { return []; }
  groupScorers(): string[] { return []; }
  score(c: Call): void {}
  scoreGroup(c: Call): void {}
}

let plugin: Plugin = new Plugin();

// register makes p the plugin of this module.
export function register(p: Plugin): void { plugin = p; }

// -- the env-server, in a rollout ----------------------------------------------------------------------------

// Reply is how a call to the env-server ended: status 0 and an episode, or a status with its cause. server
// holds the facts of one that has exited: generation, code or signal, uptime_s, log, tail.
export class Reply {
  handle: i32 = 0;
  source: string = "";
  kind: string = "";
  message: string = "";
  episode: Value = new Value();
  server: Value = new Value();
  constructor(public status: i32) {}
}

export namespace env {
  // start makes a call with {"task_data": …, "sampling"?: …} and does not wait: a handle, or a status.
  export function start(request: Json): i32 {
    return hostEnvStart(request.pointer, request.length);
  }

  // wait gives each finished handle once; -1 waits without limit, 0 only looks. Deadline: none in time,
  // NotFound: none is open.
  export function wait(timeoutMS: i32): i32 { return hostEnvAwait(timeoutMS); }
  export function poll(handle: i32): i32 { return hostEnvPoll(handle); }
  export function cancel(handle: i32): i32 { return hostEnvCancel(handle); }
  export function close(handle: i32): i32 { return hostEnvClose(handle); }

  // take gives the reply of a finished handle; it may be repeated.
  export function take(handle: i32): Reply {
    const r = new Reply(hostEnvTake(handle, 0, 0));
    r.handle = handle;
    if (r.status < 0) return r;
    const b = new ArrayBuffer(r.status);
    r.status = hostEnvTake(handle, changetype<usize>(b), b.byteLength);
    if (r.status < 0) return r;
    const v = parse(b, b.byteLength);
    r.status = Status.Internal;
    if (!v) return r;
    const err = v.get("err");
    r.episode = v.get("ok");
    r.source = err.get("source").text;
    r.kind = err.get("kind").text;
    r.message = err.get("message").text;
    r.server = err.get("server");
    if (!r.episode.isNull) r.status = 0;
    else if (!err.isNull) r.status = i32(err.get("status").int);
    return r;
  }

  // run makes one call and waits for its reply. It takes the handles of other calls out of wait's sequence,
  // so use one way or the other. After an error the handle is closed.
  export function run(request: Json): Reply {
    const handle = start(request);
    if (handle < 0) return new Reply(handle);
    while (poll(handle) == 0) {
      const got = wait(-1);
      if (got < 0 && got != Status.NotFound) return new Reply(got);
    }
    const r = take(handle);
    if (r.status != 0) close(handle);
    return r;
  }
}

// -- the exports ---------------------------------------------------------------------------------------------

let request: ArrayBuffer = new ArrayBuffer(0);
let response: Json = new Json();

export function wevalr_abi_1_0(): void {}

export function wevalr_buf(len: u32): usize {
  if (len > 64 << 20) return 0;
  // A new one each time: values that were read out of the last one stay as they are.
  if (len > 1 << 20) {
    request = new ArrayBuffer(0);
    response = new Json();
    __collect();
  }
  request = new ArrayBuffer(max<i32>(len, 16));
  return changetype<usize>(request);
}

export function wevalr_call(op: i32, len: u32): u64 {
  if (len > u32(request.byteLength)) return 0;
  const c = new Call();
  let w = new Json().open().key("ok").open();
  dispatch(c, op, w, parse(request, len));
  if (c.code.length) {
    w = new Json().open().key("err").open().key("code").text(c.code).key("message").text(c.message);
    if (c.retryable) w.key("retryable").bool(true);
    const data = c.data;
    if (data) w.key("data").json(data);
  }
  response = w.close().close();
  return (u64(response.pointer) << 32) | u64(response.length);
}

function dispatch(c: Call, op: i32, w: Json, q: Value | null): void {
  if (!q || q.kind != Kind.Object) return c.fail("bad_request", "the request cannot be read");
  c.options = q.get("options");
  c.task = q.get("task");
  c.episode = q.get("episode");
  c.episodes = q.get("episodes");
  c.scorer = q.get("scorer").text;
  c.seed = q.get("seed").int;
  c.index = q.get("index").int;
  switch (op) {
    case 1:
      plugin.init(c);
      if (!c.code.length && plugin.taskCount() >= 0) w.key("tasks").int(plugin.taskCount());
      return;
    case 2: return tasks(c, w, q);
    case 3: plugin.rollout(c); break;
    case 4: plugin.scorers().includes(c.scorer) ? plugin.score(c) : c.fail("unsupported", "this plugin has no scorer " + c.scorer); break;
    case 5: plugin.groupScorers().includes(c.scorer) ? plugin.scoreGroup(c) : c.fail("unsupported", "this plugin has no group scorer " + c.scorer); break;
    default: return c.fail("unsupported", "this plugin has no such operation");
  }
  if (op == 3) {
    w.key("episodes").openList();
    for (let i = 0; i < c.handles.length; i++) w.int(c.handles[i]);
    w.closeList().key("selected").int(c.selected);
  }
  w.key("scores").openList();
  for (let i = 0; i < c.scores.length; i++) c.scores[i].write(w);
  w.closeList();
}

function tasks(c: Call, w: Json, q: Value): void {
  const cursor = q.get("cursor").text;
  const n = plugin.taskCount();
  let i: i64 = cursor.length ? I64.parseInt(cursor) : 0;
  if (n < 0) return c.fail("unsupported", "this plugin has no tasks");
  if (i < 0 || i > n) return c.fail("bad_cursor", "bad cursor");
  const end = min<i64>(n, i + max<i64>(q.get("limit").int, 1));
  w.key("tasks").openList();
  // A page ends after a megabyte: a response has a limit.
  for (let size = 0; i < end && size < 1 << 20; i++) {
    const one = new Json();
    plugin.task(one, i);
    size += one.length;
    w.json(one);
  }
  w.closeList();
  if (i < n) w.key("next").text(i.toString());
}
