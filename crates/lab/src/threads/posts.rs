//! Posts say what each thread is doing, and since when, so that a hang is detected and named.
//! ```text
//! thread --set--> post: "flush", since 12:00:07 <--late-- watchdog
//! ```
//! Invariant: a thread updates its post before it does something that may not end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::stress::keys::Keys;
use crate::stress::operation::{StressStep, tell};

/// The activity of a thread.
#[derive(Clone)]
pub(super) enum Doing {
    /// It waits, or has ended; it may do so for any time.
    Rest,
    /// An activity in words.
    Said(&'static str),
    /// A step of a lane's history.
    Step(Arc<StressStep>, Arc<Keys>),
}

/// The post of one thread.
pub(super) struct Post {
    name: String,
    doing: Mutex<(Instant, Doing)>,
}

/// The posts of all threads.
#[derive(Default)]
pub(super) struct Posts {
    list: Mutex<Vec<Arc<Post>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Post {
    pub(super) fn set(&self, doing: Doing) {
        *lock(&self.doing) = (Instant::now(), doing);
    }

    /// Describes what the thread is doing.
    pub(super) fn tell(&self) -> String {
        let (since, doing) = lock(&self.doing).clone();
        let doing = match doing {
            Doing::Rest => "rests".into(),
            Doing::Said(words) => words.into(),
            Doing::Step(step, keys) => tell(&step, &keys).trim_start().to_string(),
        };
        format!("{}: {doing}, for {:.1} s", self.name, since.elapsed().as_secs_f64())
    }

    fn is_late(&self, patience: Duration) -> bool {
        let (since, doing) = &*lock(&self.doing);
        !matches!(doing, Doing::Rest) && since.elapsed() > patience
    }
}

impl Posts {
    pub(super) fn add(&self, name: String) -> Arc<Post> {
        let doing = Mutex::new((Instant::now(), Doing::Rest));
        let post = Arc::new(Post { name, doing });
        lock(&self.list).push(Arc::clone(&post));
        post
    }

    /// Removes the post of a thread that has ended.
    pub(super) fn remove(&self, post: &Arc<Post>) {
        lock(&self.list).retain(|other| !Arc::ptr_eq(other, post));
    }

    /// Returns a message about all threads that have been at one activity for longer than
    /// `patience`, since one that hangs may block others. None: there is no such thread.
    pub(super) fn late(&self, patience: Duration) -> Option<String> {
        let list = lock(&self.list);
        let late = list.iter().filter(|post| post.is_late(patience));
        let late: Vec<String> = late.map(|post| post.tell()).collect();
        (!late.is_empty()).then(|| format!("nobody may wait so long: {}", late.join("; ")))
    }

    /// Describes what each thread is doing.
    pub(super) fn tell(&self) -> Vec<String> {
        lock(&self.list).iter().map(|post| post.tell()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_rests_is_not_late() {
        let posts = Posts::default();
        let (one, other) = (posts.add("one".into()), posts.add("other".into()));
        assert_eq!(posts.late(Duration::ZERO), None);
        other.set(Doing::Said("flush"));
        std::thread::sleep(Duration::from_millis(2));
        assert!(posts.late(Duration::from_millis(1)).is_some_and(|late| late.contains("flush")));
        assert_eq!(posts.late(Duration::from_secs(3600)), None);
        assert_eq!(posts.tell().len(), 2);
        other.set(Doing::Rest);
        assert_eq!(posts.late(Duration::ZERO), None);
        posts.remove(&one);
        assert_eq!(posts.tell().len(), 1);
    }
}
