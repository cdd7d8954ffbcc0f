// conform-as is a plugin that uses every part of the ABI through wevalr.ts, for tests of hosts. It does what
// conform-go does: how a rollout is driven is said by the task's data field `drive`, how the scorer
// `misbehave` misbehaves by the completion.
import { Call, Json, Level, Plugin, Reply, Score, Status, asset, env, log, panic, parseNumber, register, statusName } from "./wevalr";
export { wevalr_abi_1_0, wevalr_buf, wevalr_call } from "./wevalr";

class Conform extends Plugin {
  tasks: i64 = 0;
  greeting: string = "";

  init(c: Call): void {
    this.tasks = c.options.get("tasks").int;
    this.greeting = c.options.get("greeting").text;
    if (!this.greeting.length) c.fail("bad_option", "option greeting: must not be empty");
  }

  taskCount(): i64 { return this.tasks; }

  task(w: Json, i: i64): void {
    const n = i.toString();
    w.open().key("key").text("task-" + n)
      .key("data").open().key("prompt").text("task " + n).key("number").int(i)
      .key("nested").open().key("list").openList().int(1).number(2.5).text("x").null().bool(true).closeList().close().close()
      .key("target").text("target " + n)
      .key("choices").openList().text("a").text("b").closeList()
      .key("cluster").text("cluster-" + (i % 2).toString())
      .key("metadata").open().key("i").int(i).close().close();
  }

  scorers(): string[] { return ["length", "misbehave", "echo", "assets"]; }
  groupScorers(): string[] { return ["spread"]; }

  score(c: Call): void {
    if (c.scorer == "length") this.length(c);
    else if (c.scorer == "misbehave") this.misbehave(c);
    else if (c.scorer == "echo") this.echo(c);
    else this.assets(c);
  }

  // length counts what it was shown, part by part.
  length(c: Call): void {
    const completion = c.episode.get("completion").text;
    const s = new Score(completion.length);
    s.label = "a label";
    s.explanation = "an explanation";
    s.answer = completion;
    s.metadata = new Json().open().key("messages").int(c.episode.get("messages").length).key("info").value(c.episode.get("info"))
      .key("stop_condition").text(c.episode.get("stop_condition").text).key("errors").int(c.episode.get("errors").length)
      .key("seed").int(c.seed).key("key").text(c.task.get("key").text).close();
    c.add(s);
    const words = new Score(completion.split(" ").filter((w: string): bool => w.length > 0).length);
    words.name = "words";
    c.add(words);
    const nothing = Score.skipped("skipped");
    nothing.name = "nothing";
    c.add(nothing);
  }

  misbehave(c: Call): void {
    const how = c.episode.get("completion").text;
    if (how == "panic") panic("a panic of the plugin");
    if (how == "error") {
      c.retryable = true;
      c.data = new Json().open().key("n").int(1).close();
      return c.fail("own_code", "an error of the plugin");
    }
    if (how == "none") return;
    if (how == "env") return c.failEnv(env.run(new Json().open().key("task_data").open().close().close()));
    const s = Score.binary(true);
    if (how == "nan") s.value = NaN;
    if (how == "inf") s.value = Infinity;
    if (how == "range") s.value = 2;
    if (how == "twice") c.add(Score.binary(false));
    if (how == "huge") s.explanation = "x".repeat(9 << 20);
    c.add(s);
  }

  // echo gives the completion back as a number, and as a text.
  echo(c: Call): void {
    const completion = c.episode.get("completion").text;
    const s = new Score(parseNumber(completion));
    s.answer = completion;
    s.isSkipped = isNaN(s.value);
    c.add(s);
  }

  assets(c: Call): void {
    const text = asset("data/asset.txt");
    const s = new Score(1);
    s.metadata = new Json().open().key("greeting").text(this.greeting)
      .key("asset").text(text ? String.UTF8.decode(text) : "")
      .key("missing").text(asset("data/none.txt") ? "" : statusName(Status.NotFound)).close();
    log(Level.Info, "assets");
    c.add(s);
  }

  // spread is the difference between the longest and the shortest completion.
  scoreGroup(c: Call): void {
    let least = i32.MAX_VALUE;
    let most = 0;
    for (let i = 0; i < c.episodes.length; i++) {
      const n = c.episodes.items[i].get("completion").text.length;
      least = min(least, n);
      most = max(most, n);
    }
    c.add(c.episodes.length ? new Score(most - least) : Score.skipped("no episodes"));
  }

  rollout(c: Call): void {
    const data = c.task.get("data");
    const drive = data.get("drive").text;
    const q = ask(data.get("prompt").text, "");
    if (drive == "" || drive == "run") run(c, q, 1);
    else if (drive == "chain") run(c, q, 2);
    else if (drive == "await") wait(c, q);
    else if (drive == "cancel") cancel(c, q);
    else if (drive == "take") take(c, q);
    else if (drive == "sampling") run(c, ask("p", "temperature"), 1);
    else if (drive == "ungranted") run(c, ask("p", "max_tokens"), 1);
    else if (drive == "survive") { // the env-server's end is a status: this rollout goes on
      const r = env.run(q);
      if (r.status != Status.ServerExited || r.server.get("code").int != 23) return c.fail("survive", "want server_exited with exit code 23");
      run(c, q, 1);
    } else if (drive == "close") {
      const r = env.run(q);
      if (r.status) return c.failEnv(r);
      env.close(r.handle);
      c.select(r.handle);
    } else c.fail("bad_drive", "no such drive: " + drive);
  }
}

function ask(prompt: string, sampling: string): Json {
  const q = new Json().open().key("task_data").open().key("prompt").text(prompt).close();
  if (sampling.length) q.key("sampling").open().key(sampling).number(0.5).close();
  return q.close();
}

function selected(c: Call): void {
  const s = new Score(c.handles.length);
  s.name = "calls";
  c.add(s);
}

function run(c: Call, q: Json, times: i32): void {
  for (; times; times--) {
    const r = env.run(q);
    if (r.status) return c.failEnv(r);
    c.select(r.handle);
    q = ask(r.episode.get("completion").text, "");
  }
  selected(c);
}

function wait(c: Call, q: Json): void {
  if (env.wait(0) != Status.NotFound) return c.fail("await", "nothing open: want not_found");
  for (let i = 0; i < 3; i++) env.start(q);
  while (c.handles.length < 3) {
    const h = env.wait(10);
    if (h == Status.Deadline) continue;
    if (h < 0 || env.poll(h) != 1) return c.fail("await", "an awaited handle is not done");
    c.select(h);
  }
  selected(c);
}

function cancel(c: Call, q: Json): void {
  const h = env.start(q);
  if (env.cancel(h) != 0 || env.wait(-1) != h || env.take(h).status != Status.Cancelled) return c.fail("cancel", "a cancelled call: want cancelled");
  env.close(h);
  run(c, q, 1);
}

function take(c: Call, q: Json): void {
  const h = env.start(q);
  let a: Reply, b: Reply;
  if (env.wait(-1) != h || (a = env.take(h)).status || (b = env.take(h)).status || a.episode.get("completion").text != b.episode.get("completion").text) {
    return c.fail("take", "a second take: want the same episode");
  }
  env.close(h);
  if (env.take(h).status != Status.Invalid) return c.fail("take", "a closed handle: want invalid");
  run(c, q, 1);
}

register(new Conform());
