//! A streamed answer: a bounded buffer between any thread and a connection.
//!
//! Bytes are sent as soon as the connection accepts them. A writer never blocks: [`NotSent::Full`]
//! says that the reader has fallen behind, [`NotSent::Gone`] that it has left.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Why bytes were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// The reader has not taken what was sent before.
    Full,
    /// Nobody reads any more: the client left, or the stream was ended.
    Gone,
}

/// The writing end. Dropping it ends the stream, after what it holds.
pub struct StreamWriter(Arc<Pipe>);

/// The reading end, for [`super::Reply::Stream`].
pub struct StreamBody {
    pipe: Arc<Pipe>,
    /// Dropped with the answer.
    _held: Option<Box<dyn Send + Sync>>,
}

/// A stream that holds at most `capacity_bytes` that its reader has not taken.
pub fn stream(capacity_bytes: usize) -> (StreamWriter, StreamBody) {
    let pipe = Arc::new(Pipe {
        capacity_bytes,
        state: Mutex::default(),
    });
    let body = StreamBody {
        pipe: Arc::clone(&pipe),
        _held: None,
    };
    (StreamWriter(pipe), body)
}

pub(super) struct Pipe {
    capacity_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Bytes>,
    held_bytes: usize,
    ended: bool,
    reader: Option<Waker>,
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No more is taken; what is held is still read.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl StreamWriter {
    /// Adds bytes, all or none of them. A piece longer than the capacity is always
    /// [`NotSent::Full`].
    pub fn try_send(&self, bytes: impl Into<Bytes>) -> Result<(), NotSent> {
        let bytes = bytes.into();
        let mut state = self.0.lock();
        if state.ended {
            return Err(NotSent::Gone);
        }
        if bytes.len() > self.0.capacity_bytes - state.held_bytes {
            return Err(NotSent::Full);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        state.held_bytes += bytes.len();
        state.queue.push_back(bytes);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    /// Bytes that it would take now. Only the writer makes it less.
    pub fn room_bytes(&self) -> usize {
        self.0.capacity_bytes - self.0.lock().held_bytes
    }

    /// Nobody reads any more.
    pub fn is_gone(&self) -> bool {
        self.0.lock().ended
    }

    /// Ends the stream after what it holds.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl StreamBody {
    /// Holds this for as long as its connection has the answer.
    #[must_use]
    pub fn holding(mut self, held: impl Send + Sync + 'static) -> Self {
        self._held = Some(Box::new(held));
        self
    }

    pub(super) fn pipe(&self) -> Arc<Pipe> {
        Arc::clone(&self.pipe)
    }

    /// The next bytes; `None` at the end.
    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.pipe.lock();
        if let Some(bytes) = state.queue.pop_front() {
            state.held_bytes -= bytes.len();
            return Poll::Ready(Some(bytes));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        match &mut state.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        let mut state = self.pipe.lock();
        state.ended = true;
        state.queue = VecDeque::new();
        state.held_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &StreamBody) -> Poll<Option<Bytes>> {
        body.poll_next(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn holds_no_more_than_its_capacity() {
        let (writer, body) = stream(4);
        assert_eq!(writer.try_send("abc"), Ok(()));
        assert_eq!(writer.try_send("de"), Err(NotSent::Full));
        assert_eq!(writer.room_bytes(), 1);
        assert_eq!(read(&body), Poll::Ready(Some("abc".into())));
        assert_eq!(writer.try_send("de"), Ok(()));
        assert_eq!(writer.try_send("too long"), Err(NotSent::Full));
    }

    #[test]
    fn what_was_taken_is_read_before_the_end() {
        let (writer, body) = stream(4);
        writer.try_send("a").unwrap();
        writer.close();
        assert_eq!(read(&body), Poll::Ready(Some("a".into())));
        assert_eq!(read(&body), Poll::Ready(None));
    }

    #[test]
    fn a_writer_learns_that_nobody_reads() {
        let (writer, body) = stream(4);
        assert!(!writer.is_gone());
        drop(body);
        assert!(writer.is_gone());
        assert_eq!(writer.try_send("a"), Err(NotSent::Gone));
    }
}
