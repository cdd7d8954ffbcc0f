//! conform-rust is a plugin that uses every part of the ABI through the Rust SDK, for tests of hosts. It does
//! what conform-go does: how a rollout is driven is said by the task's data field `drive`, how the scorer
//! `misbehave` misbehaves by the completion.

#[path = "../../../plugins/sdk/rust/src/lib.rs"]
mod wevalr;

use wevalr::json::object;
use wevalr::{status, Call, Env, Error, Handle, Json, Level, Plugin, Rollout, Score};

#[derive(Default)]
struct Conform {
    tasks: usize,
    greeting: String,
}

#[no_mangle]
fn wevalr_plugin() -> Box<dyn Plugin> {
    Box::new(Conform::default())
}

impl Plugin for Conform {
    fn init(&mut self, options: &Json) -> Result<(), Error> {
        self.tasks = options["tasks"].int() as usize;
        self.greeting = options["greeting"].text().into();
        if self.greeting.is_empty() {
            return Err(Error::new("bad_option", "option greeting: must not be empty"));
        }
        Ok(())
    }

    fn task_count(&self) -> Option<usize> {
        Some(self.tasks)
    }

    fn task(&self, i: usize) -> Result<Json, Error> {
        let n = i as i64;
        let list = Json::Array(vec![1.into(), 2.5.into(), "x".into(), Json::Null, true.into()]);
        Ok(object([
            ("key", format!("task-{}", i).into()),
            ("data", object([
                ("prompt", format!("task {}", i).into()), ("number", n.into()), ("nested", object([("list", list)])),
            ])),
            ("target", format!("target {}", i).into()),
            ("choices", vec!["a", "b"].into()),
            ("cluster", format!("cluster-{}", i % 2).into()),
            ("metadata", object([("i", n.into())])),
        ]))
    }

    fn scorers(&self) -> &[&str] {
        &["length", "misbehave", "echo", "assets"]
    }

    fn group_scorers(&self) -> &[&str] {
        &["spread"]
    }

    fn score(&mut self, c: &Call) -> Result<Vec<Score>, Error> {
        match c.scorer.as_str() {
            "length" => Ok(length(c)),
            "misbehave" => misbehave(c),
            "echo" => {
                let completion = c.episode["completion"].text();
                let number = completion.trim().parse().ok().map(Json::Number);
                let score = number.map_or(Score::skipped(""), |n| Score::number(n.number()));
                Ok(vec![score.answer(completion)])
            }
            _ => Ok(vec![self.assets()]),
        }
    }

    /// The difference between the longest and the shortest completion.
    fn score_group(&mut self, c: &Call) -> Result<Vec<Score>, Error> {
        let lengths = || c.episodes.items().iter().map(|e| e["completion"].text().len());
        Ok(vec![match (lengths().min(), lengths().max()) {
            (Some(least), Some(most)) => Score::number((most - least) as f64),
            _ => Score::skipped("no episodes"),
        }])
    }

    fn rollout(&mut self, env: &Env, c: &Call) -> Result<Rollout, Error> {
        let data = &c.task["data"];
        let q = ask(data["prompt"].text(), "");
        match data["drive"].text() {
            "" | "run" => run(env, q, 1),
            "chain" => run(env, q, 2),
            "await" => wait(env, q),
            "cancel" => cancel(env, q),
            "take" => take(env, q),
            "sampling" => run(env, ask("p", "temperature"), 1),
            "ungranted" => run(env, ask("p", "max_tokens"), 1),
            // The env-server's end is an error like any other: this rollout goes on.
            "survive" => match env.run(&q) {
                Err(e) if e.status == status::SERVER_EXITED && e.server["code"].int() == 23 => run(env, q, 1),
                _ => Err(Error::new("survive", "want server_exited with exit code 23")),
            },
            "close" => {
                let (h, _) = env.run(&q)?;
                h.close();
                Ok(scored(vec![h]))
            }
            _ => Err(Error::new("bad_drive", "no such drive")),
        }
    }
}

impl Conform {
    fn assets(&mut self) -> Score {
        wevalr::log(Level::Info, "assets");
        let asset = wevalr::asset("data/asset.txt").unwrap_or_default();
        let missing = wevalr::asset("data/none.txt").map_or_else(status::name, |_| "");
        Score::number(1.0).metadata(object([
            ("greeting", self.greeting.as_str().into()),
            ("asset", String::from_utf8_lossy(&asset).into_owned().into()),
            ("missing", missing.into()),
        ]))
    }
}

/// Counts what it was shown, part by part.
fn length(c: &Call) -> Vec<Score> {
    let completion = c.episode["completion"].text();
    vec![
        Score::number(completion.len() as f64).label("a label").explanation("an explanation").answer(completion).metadata(object([
            ("messages", (c.episode["messages"].items().len() as i64).into()),
            ("info", c.episode["info"].clone()),
            ("stop_condition", c.episode["stop_condition"].clone()),
            ("errors", (c.episode["errors"].items().len() as i64).into()),
            ("seed", c.seed.into()),
            ("key", c.task["key"].clone()),
        ])),
        Score::number(completion.split_whitespace().count() as f64).name("words"),
        Score::skipped("skipped").name("nothing"),
    ]
}

fn misbehave(c: &Call) -> Result<Vec<Score>, Error> {
    Ok(match c.episode["completion"].text() {
        "panic" => panic!("a panic of the plugin"),
        "error" => {
            let data = object([("n", 1.into())]);
            return Err(Error { retryable: true, data, ..Error::new("own_code", "an error of the plugin") });
        }
        "none" => vec![],
        "env" => return Err(Error::from(wevalr::EnvError { status: status::DENIED, ..Default::default() })),
        "nan" => vec![Score::number(f64::NAN)],
        "inf" => vec![Score::number(f64::INFINITY)],
        "range" => vec![Score::number(2.0)],
        "twice" => vec![Score::binary(true), Score::binary(false)],
        "huge" => vec![Score::binary(true).explanation(&"x".repeat(9 << 20))],
        _ => vec![Score::binary(true)],
    })
}

fn ask(prompt: &str, sampling: &str) -> Json {
    let data = object([("prompt", prompt.into())]);
    if sampling.is_empty() {
        return object([("task_data", data)]);
    }
    object([("task_data", data), ("sampling", object([(sampling, 0.5.into())]))])
}

fn scored(episodes: Vec<Handle>) -> Rollout {
    let n = episodes.len();
    Rollout { episodes, selected: n - 1, scores: vec![Score::number(n as f64).name("calls")] }
}

fn run(env: &Env, mut q: Json, times: usize) -> Result<Rollout, Error> {
    let mut handles = Vec::new();
    for _ in 0..times {
        let (h, episode) = env.run(&q)?;
        handles.push(h);
        q = ask(episode["completion"].text(), "");
    }
    Ok(scored(handles))
}

fn wait(env: &Env, q: Json) -> Result<Rollout, Error> {
    if env.wait(0).map_or_else(|e| e.status, |_| 0) != status::NOT_FOUND {
        return Err(Error::new("await", "nothing open: want not_found"));
    }
    for _ in 0..3 {
        env.start(&q)?;
    }
    let mut handles = Vec::new();
    while handles.len() < 3 {
        match env.wait(10) {
            Err(e) if e.status == status::DEADLINE => {}
            Err(e) => return Err(e.into()),
            Ok(h) if !h.done() => return Err(Error::new("await", "an awaited handle is not done")),
            Ok(h) => handles.push(h),
        }
    }
    Ok(scored(handles))
}

fn cancel(env: &Env, q: Json) -> Result<Rollout, Error> {
    let h = env.start(&q)?;
    h.cancel();
    if env.wait(-1)? != h || h.take().map_or_else(|e| e.status, |_| 0) != status::CANCELLED {
        return Err(Error::new("cancel", "a cancelled call: want cancelled"));
    }
    h.close();
    run(env, q, 1)
}

fn take(env: &Env, q: Json) -> Result<Rollout, Error> {
    let h = env.start(&q)?;
    if env.wait(-1)? != h || h.take()? != h.take()? {
        return Err(Error::new("take", "a second take: want the same episode"));
    }
    h.close();
    if h.take().map_or_else(|e| e.status, |_| 0) != status::INVALID {
        return Err(Error::new("take", "a closed handle: want invalid"));
    }
    run(env, q, 1)
}
