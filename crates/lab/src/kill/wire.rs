//! The messages of the victim process about its progress, sent through a pipe.
//! ```text
//! tag | lane or activity | 0 0 0 0 0 0 | number, 8 bytes    one write(2) each: whole or not at all
//! ```
//! Invariant: a message is in the pipe before its sender goes on, and stays there if the sender is
//! killed. So a reported write was made, and no report precedes that of an earlier write.

use std::fs::File;
use std::io::{self, Write};

use serde::Serialize;

/// Bytes of a message, few enough that writing them to a pipe is atomic.
pub(super) const MESSAGE_BYTES: usize = 16;

/// An activity during which a process may be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[repr(u8)]
pub(super) enum Activity {
    /// Opening the store, with recovery.
    Open,
    /// Writers at work.
    Write,
    /// A flush.
    Flush,
    /// A merge.
    Merge,
    /// Writing the filter's image.
    Image,
    /// Making a checkpoint.
    Checkpoint,
    /// Closing or dropping the store.
    Close,
}

impl Activity {
    pub(super) const COUNT: usize = 7;
    pub(super) const ALL: [Activity; Self::COUNT] = [
        Activity::Open,
        Activity::Write,
        Activity::Flush,
        Activity::Merge,
        Activity::Image,
        Activity::Checkpoint,
        Activity::Close,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Activity::Open => "open",
            Activity::Write => "write",
            Activity::Flush => "flush",
            Activity::Merge => "merge",
            Activity::Image => "image",
            Activity::Checkpoint => "checkpoint",
            Activity::Close => "close",
        }
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The next write of a lane is acknowledged.
    Done { lane: u8 },
    /// An activity begins. The number tells checkpoints apart.
    Begin { activity: Activity, number: u64 },
    /// This many writes of a lane in this session survive a kill even without a log.
    Durable { lane: u8, count: u64 },
    /// An activity succeeded.
    End { activity: Activity, number: u64 },
}

impl Message {
    fn encode(self) -> [u8; MESSAGE_BYTES] {
        let (tag, about, number) = match self {
            Message::Done { lane } => (1, lane, 0),
            Message::Begin { activity, number } => (2, activity as u8, number),
            Message::End { activity, number } => (3, activity as u8, number),
            Message::Durable { lane, count } => (4, lane, count),
        };
        let mut bytes = [0; MESSAGE_BYTES];
        (bytes[0], bytes[1]) = (tag, about);
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// Decodes a message. None: the bytes are no message.
    pub(super) fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Option<Self> {
        let number = u64::from_le_bytes(*bytes.last_chunk()?);
        let activity = || Activity::ALL.get(usize::from(bytes[1])).copied();
        match bytes[0] {
            1 => Some(Message::Done { lane: bytes[1] }),
            2 => activity().map(|activity| Message::Begin { activity, number }),
            3 => activity().map(|activity| Message::End { activity, number }),
            4 => Some(Message::Durable { lane: bytes[1], count: number }),
            _ => None,
        }
    }
}

/// The write end of the pipe, which all threads share.
#[derive(Debug)]
pub(super) struct Teller(pub(super) File);

impl Teller {
    /// Sends a message. An error means that the listener is gone.
    pub(super) fn tell(&self, message: Message) -> io::Result<()> {
        (&self.0).write_all(&message.encode())
    }

    /// Reports that an activity begins, runs it, and reports its end.
    pub(super) fn during<T>(
        &self,
        activity: Activity,
        number: u64,
        work: impl FnOnce() -> crate::error::Result<T>,
    ) -> crate::error::Result<T> {
        self.tell(Message::Begin { activity, number }).map_err(nobody_listens)?;
        let done = work()?;
        self.tell(Message::End { activity, number }).map_err(nobody_listens)?;
        Ok(done)
    }
}

pub(super) fn nobody_listens(error: io::Error) -> crate::error::LabError {
    crate::error::LabError::Victim(format!(
        "nobody listens to the process that is to be killed: {error}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_told() {
        for activity in Activity::ALL {
            for message in [
                Message::Done { lane: activity as u8 },
                Message::Begin { activity, number: 1 << 40 },
                Message::End { activity, number: 3 },
            ] {
                assert_eq!(Message::decode(&message.encode()), Some(message));
            }
        }
        assert_eq!(Message::decode(&[0; MESSAGE_BYTES]), None);
        let mut unknown = Message::Begin { activity: Activity::Open, number: 0 }.encode();
        unknown[1] = Activity::COUNT as u8;
        assert_eq!(Message::decode(&unknown), None);
    }
}
