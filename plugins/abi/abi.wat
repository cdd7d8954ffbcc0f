;; wevalr ABI v1.0: the normative list of signatures. Names, types, numbers and meanings never change
;; within a major version; a minor version adds functions, statuses or fields.
;;
;; Every import returns a number >= 0 or a negative status (a guest treats an unknown one as INTERNAL):
;;
;;   DENIED -1   INVALID -2   TOO_LARGE -3   CANCELLED -4   DEADLINE -5   SERVER_EXITED -6
;;   PEER_ERROR -7   WORKER_LOST -8   LIMIT -9   NOT_FOUND -10   INTERNAL -11
;;   CONNECTION_LOST -12   STALLED -13   PROTOCOL -14
;;
;; Pointers and lengths are unsigned. A range outside the guest's memory traps; so does every import
;; while no wevalr_call is active (in _initialize, for example). Nothing else traps. Payloads are in
;; the encoding of the manifest (msgpack or json); unknown fields are ignored, except in env_start.
(module
  ;; -- imports: always there -------------------------------------------------------------------

  ;; 1 if the host keeps messages of this level (debug 0, info 1, warn 2, error 3), else 0.
  (import "wevalr_v1" "log_enabled" (func (param $level i32) (result i32)))

  ;; Logs one UTF-8 message. 0. What is past the limit of a call is cut, once marked, and still 0.
  (import "wevalr_v1" "log" (func (param $level i32) (param $ptr i32) (param $len i32) (result i32)))

  ;; Says why the guest is about to trap (a panic's text). 0. The last text of a call counts.
  (import "wevalr_v1" "fail" (func (param $ptr i32) (param $len i32) (result i32)))

  ;; Length of an asset that travels inside the module. NOT_FOUND.
  (import "wevalr_v1" "asset_len" (func (param $name_ptr i32) (param $name_len i32) (result i32)))

  ;; Copies an asset to ptr if its length <= cap, else writes nothing. The length either way. NOT_FOUND.
  (import "wevalr_v1" "asset_read"
    (func (param $name_ptr i32) (param $name_len i32) (param $ptr i32) (param $cap i32) (result i32)))

  ;; -- imports: capability `env`, in op 3 only (elsewhere, and ungranted: DENIED) -----------------

  ;; Starts one `run` of the env-server with {task_data, sampling?}; a handle >= 1. Anything more in the
  ;; request is INVALID, an ungranted sampling key DENIED. More than 1,024 open handles are LIMIT, and so
  ;; are more than 10,000 runs of a call, and over 256 MiB of requests that have not ended. After the end
  ;; of the server that this call is bound to: SERVER_EXITED.
  (import "wevalr_v1" "env_start" (func (param $ptr i32) (param $len i32) (result i32)))

  ;; Waits until a handle of this call has finished, and gives each finished handle once, in the order
  ;; in which they finished. timeout -1 = none, 0 = look only. DEADLINE: none finished in time.
  ;; NOT_FOUND: nothing is open that has not been given already.
  (import "wevalr_v1" "env_await" (func (param $timeout_ms i32) (result i32)))

  ;; 1 if the handle has finished, 0 if not. INVALID: no open handle of this call.
  (import "wevalr_v1" "env_poll" (func (param $handle i32) (result i32)))

  ;; Asks that the handle end; it then finishes as CANCELLED, unless its reply came first. Does not
  ;; wait. 0, also when it had finished. INVALID.
  (import "wevalr_v1" "env_cancel" (func (param $handle i32) (result i32)))

  ;; Copies the reply of a finished handle to ptr if its length <= cap, else writes nothing. The length
  ;; either way; repeatable until env_close. The reply is {ok: view of the episode} or
  ;; {err: {status, source, kind, message, server?}}. INVALID: no open handle of this call, or
  ;; not finished.
  (import "wevalr_v1" "env_take" (func (param $handle i32) (param $ptr i32) (param $cap i32) (result i32)))

  ;; Gives the handle back; one that has not finished is cancelled. 0. INVALID. Its episode can then no
  ;; longer be named in the response of op 3.
  (import "wevalr_v1" "env_close" (func (param $handle i32) (result i32)))

  ;; -- exports -------------------------------------------------------------------------------------

  (memory (export "memory") 1)

  ;; Optional; called once, before anything else.
  (func (export "_initialize"))

  ;; The marker wevalr_abi_<major>_<minor>: never called. Its type is () -> ().
  (func (export "wevalr_abi_1_0"))

  ;; Offset of a buffer of at least len bytes for the next request; 0 = cannot. The guest owns it; it is
  ;; valid until the next wevalr_buf.
  (func (export "wevalr_buf") (param $len i32) (result i32) (i32.const 0))

  ;; Runs op (1 init, 2 tasks, 3 rollout, 4 score, 5 score_group) on the request of len bytes in the
  ;; buffer. ptr<<32|len of the response, both halves unsigned, valid until the next export call; len 0
  ;; is an invalid response. The response is {ok: ...} or {err: {code, message, retryable, data}}.
  (func (export "wevalr_call") (param $op i32) (param $len i32) (result i64) (i64.const 0))
)
