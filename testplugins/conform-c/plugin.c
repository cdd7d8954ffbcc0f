// conform-c is a plugin that uses every part of the ABI through wevalr.h, for tests of hosts. It does what
// conform-go does: how a rollout is driven is said by the task's data field `drive`, how the scorer
// `misbehave` misbehaves by the completion.
#include "../../plugins/sdk/c/wevalr.h"

static wv_i64 task_count;
static wv_str greeting;

static int init(wv_call *c) {
  task_count = wv_int(wv_get(c->options, "tasks"));
  greeting = wv_text(wv_get(c->options, "greeting")); // what init allocated stays
  return greeting.n ? 0 : wv_fail(c, WV("bad_option"), WV("option greeting: must not be empty"));
}

static wv_i64 count_tasks(void) { return task_count; }

static wv_str numbered(wv_str before, wv_i64 i) {
  wv_json w = {0};
  wv_raw(&w, before);
  wv_put_int(&w, i);
  return wv_written(&w);
}

static void task(wv_json *w, wv_i64 i) {
  wv_open(w);
  wv_key(w, "key"), wv_put_text(w, numbered(WV("task-"), i));
  wv_key(w, "data"), wv_open(w);
  wv_key(w, "prompt"), wv_put_text(w, numbered(WV("task "), i));
  wv_key(w, "number"), wv_put_int(w, i);
  wv_key(w, "nested"), wv_open(w);
  wv_key(w, "list"), wv_open_list(w);
  wv_put_int(w, 1), wv_put_number(w, 2.5), wv_put_text(w, WV("x")), wv_put_null(w), wv_put_bool(w, 1);
  wv_close_list(w);
  wv_close(w);
  wv_close(w);
  wv_key(w, "target"), wv_put_text(w, numbered(WV("target "), i));
  wv_key(w, "choices"), wv_open_list(w), wv_put_text(w, WV("a")), wv_put_text(w, WV("b")), wv_close_list(w);
  wv_key(w, "cluster"), wv_put_text(w, numbered(WV("cluster-"), i % 2));
  wv_key(w, "metadata"), wv_open(w), wv_key(w, "i"), wv_put_int(w, i), wv_close(w);
  wv_close(w);
}

// length counts what it was shown, part by part.
static int length(wv_call *c) {
  wv_score *s = wv_add_score(c);
  wv_json m = {0};
  s->answer = wv_text(wv_get(c->episode, "completion"));
  s->value = (double)s->answer.n;
  s->label = WV("a label"), s->explanation = WV("an explanation");
  wv_open(&m);
  wv_key(&m, "messages"), wv_put_int(&m, (wv_i64)wv_get(c->episode, "messages")->count);
  wv_key(&m, "info"), wv_put_value(&m, wv_get(c->episode, "info"));
  wv_key(&m, "stop_condition"), wv_put_text(&m, wv_text(wv_get(c->episode, "stop_condition")));
  wv_key(&m, "errors"), wv_put_int(&m, (wv_i64)wv_get(c->episode, "errors")->count);
  wv_key(&m, "seed"), wv_put_int(&m, c->seed);
  wv_key(&m, "key"), wv_put_text(&m, wv_text(wv_get(c->task, "key")));
  wv_close(&m);
  s->metadata = wv_written(&m);
  wv_score *words = wv_add_score(c);
  words->name = WV("words");
  for (wv_size i = 0; i < s->answer.n; i++)
    words->value += !wv_is_space(s->answer.p[i]) && (i == 0 || wv_is_space(s->answer.p[i - 1]));
  wv_score *nothing = wv_add_score(c);
  nothing->name = WV("nothing"), nothing->skipped = 1;
  return 0;
}

static int misbehave(wv_call *c) {
  wv_str how = wv_text(wv_get(c->episode, "completion"));
  if (wv_equal(how, WV("panic"))) wv_panic(WV("a panic of the plugin"));
  if (wv_equal(how, WV("error"))) {
    c->retryable = 1;
    c->data = WV("{\"n\":1}");
    return wv_fail(c, WV("own_code"), WV("an error of the plugin"));
  }
  if (wv_equal(how, WV("none"))) return 0;
  if (wv_equal(how, WV("env"))) {
    wv_json q = {0};
    wv_open(&q), wv_key(&q, "task_data"), wv_open(&q), wv_close(&q), wv_close(&q);
    wv_reply r;
    wv_run(&q, &r);
    return wv_fail_env(c, &r);
  }
  wv_score *s = wv_add_score(c);
  s->value = 1;
  if (wv_equal(how, WV("nan"))) s->value = __builtin_nan("");
  if (wv_equal(how, WV("inf"))) s->value = __builtin_inf();
  if (wv_equal(how, WV("range"))) s->value = 2;
  if (wv_equal(how, WV("twice"))) wv_add_score(c);
  if (wv_equal(how, WV("huge"))) {
    char *p = wv_alloc(9 << 20);
    for (int i = 0; i < 9 << 20; i++) p[i] = 'x';
    s->explanation = (wv_str){p, 9 << 20};
  }
  return 0;
}

// echo gives the completion back as a number, and as a text.
static int echo(wv_call *c) {
  wv_score *s = wv_add_score(c);
  int ok;
  s->answer = wv_text(wv_get(c->episode, "completion"));
  s->value = wv_parse_number(wv_trim(s->answer), &ok);
  s->skipped = !ok;
  return 0;
}

static int assets(wv_call *c) {
  wv_score *s = wv_add_score(c);
  wv_json m = {0};
  wv_str asset = WV("");
  s->value = 1;
  wv_asset(WV("data/asset.txt"), &asset);
  wv_log(WV_INFO, WV("assets"));
  wv_open(&m);
  wv_key(&m, "greeting"), wv_put_text(&m, greeting);
  wv_key(&m, "asset"), wv_put_text(&m, wv_trim(asset));
  wv_key(&m, "missing"), wv_put_text(&m, wv_status_name(wv_asset(WV("data/none.txt"), &asset)));
  wv_close(&m);
  s->metadata = wv_written(&m);
  return 0;
}

// spread is the difference between the longest and the shortest completion.
static int spread(wv_call *c) {
  wv_score *s = wv_add_score(c);
  wv_size least = (wv_size)-1, most = 0;
  WV_EACH(e, c->episodes) {
    wv_size n = wv_text(wv_get(e, "completion")).n;
    least = n < least ? n : least, most = n > most ? n : most;
  }
  s->skipped = !c->episodes->count;
  s->value = s->skipped ? 0 : (double)(most - least);
  return 0;
}

// request asks with a prompt; temperature < 0 = none.
static wv_json request(wv_str prompt, wv_str sampling) {
  wv_json q = {0};
  wv_open(&q);
  wv_key(&q, "task_data"), wv_open(&q), wv_key(&q, "prompt"), wv_put_text(&q, prompt), wv_close(&q);
  if (sampling.n) wv_key(&q, "sampling"), wv_open(&q), wv_key_text(&q, sampling), wv_put_number(&q, 0.5), wv_close(&q);
  wv_close(&q);
  return q;
}

static int selected(wv_call *c) {
  wv_score *s = wv_add_score(c);
  s->name = WV("calls"), s->value = (double)(c->selected + 1);
  return 0;
}

static int run(wv_call *c, wv_json q, int times) {
  for (wv_reply r; times; times--) {
    int h = wv_run(&q, &r);
    if (h < 0) return wv_fail_env(c, &r);
    wv_select(c, h);
    q = request(wv_text(wv_get(r.episode, "completion")), WV(""));
  }
  return selected(c);
}

static int await(wv_call *c, wv_json q) {
  if (wv_await(0) != WV_NOT_FOUND) return wv_fail(c, WV("await"), WV("nothing open: want not_found"));
  for (int i = 0; i < 3; i++)
    if (wv_start(&q) < 0) return wv_fail(c, WV("await"), WV("start"));
  for (int n = 0; n < 3;) {
    int h = wv_await(10);
    if (h == WV_DEADLINE) continue;
    if (h < 0 || wv_host_env_poll(h) != 1) return wv_fail(c, WV("await"), WV("an awaited handle is not done"));
    wv_select(c, h), n++;
  }
  return selected(c);
}

static int cancel(wv_call *c, wv_json q) {
  wv_reply r;
  int h = wv_start(&q);
  if (wv_host_env_cancel(h) != 0 || wv_await(-1) != h || wv_take(h, &r) != WV_CANCELLED)
    return wv_fail(c, WV("cancel"), WV("a cancelled call: want cancelled"));
  wv_host_env_close(h);
  return run(c, q, 1);
}

static int take(wv_call *c, wv_json q) {
  wv_reply a, b;
  int h = wv_start(&q);
  if (wv_await(-1) != h || wv_take(h, &a) || wv_take(h, &b) ||
      !wv_equal(wv_text(wv_get(a.episode, "completion")), wv_text(wv_get(b.episode, "completion"))))
    return wv_fail(c, WV("take"), WV("a second take: want the same episode"));
  wv_host_env_close(h);
  if (wv_take(h, &a) != WV_INVALID) return wv_fail(c, WV("take"), WV("a closed handle: want invalid"));
  return run(c, q, 1);
}

static int rollout(wv_call *c) {
  const wv_value *data = wv_get(c->task, "data");
  wv_str drive = wv_text(wv_get(data, "drive"));
  wv_json q = request(wv_text(wv_get(data, "prompt")), WV(""));
  wv_reply r;
  if (!drive.n || wv_equal(drive, WV("run"))) return run(c, q, 1);
  if (wv_equal(drive, WV("chain"))) return run(c, q, 2);
  if (wv_equal(drive, WV("await"))) return await(c, q);
  if (wv_equal(drive, WV("cancel"))) return cancel(c, q);
  if (wv_equal(drive, WV("take"))) return take(c, q);
  if (wv_equal(drive, WV("sampling"))) return run(c, request(WV("p"), WV("temperature")), 1);
  if (wv_equal(drive, WV("ungranted"))) return run(c, request(WV("p"), WV("max_tokens")), 1);
  if (wv_equal(drive, WV("survive"))) { // the env-server's end is a status: this rollout goes on
    if (wv_run(&q, &r) >= 0 || r.status != WV_SERVER_EXITED || wv_int(wv_get(r.server, "code")) != 23)
      return wv_fail(c, WV("survive"), WV("want server_exited with exit code 23"));
    return run(c, q, 1);
  }
  if (wv_equal(drive, WV("close"))) {
    int h = wv_run(&q, &r);
    if (h < 0) return wv_fail_env(c, &r);
    wv_host_env_close(h);
    wv_select(c, h);
    return 0;
  }
  return wv_fail(c, WV("bad_drive"), WV("no such drive"));
}

WEVALR_PLUGIN(.init = init, .tasks = count_tasks, .task = task, .rollout = rollout,
              .scorers = {{"length", length}, {"misbehave", misbehave}, {"echo", echo}, {"assets", assets}},
              .group_scorers = {{"spread", spread}})
