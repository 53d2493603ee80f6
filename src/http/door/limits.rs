//! The door's bounds, and what happens at each.

use crate::config::Settings;
use std::time::Duration;

/// What a connection to the database takes: an event loop and a socket.
const DESCRIPTORS_OF_CONNECTION: u64 = 4;
/// Connections to the database beside the pool: leases, the audit, the watchdog's question, a cancel.
const CONNECTIONS_BESIDE: u64 = 6;
/// Descriptors for probes, files, and connections to the outside.
const OTHER_DESCRIPTORS: u64 = 16;

/// The bounds that the door keeps.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections open at once. A few more are taken for probes; others get 503 there.
    pub connections: usize,
    /// Connections open at once from one address (IPv6: one /64). Beyond it: 429.
    pub connections_per_address: usize,
    /// Bytes of the request line and header block, at least 8192. Beyond it: 431.
    pub header_bytes: usize,
    /// Header fields. Beyond it: 431.
    pub headers: usize,
    /// Bytes of the largest body that any route takes. Beyond it: 413, unread.
    pub body_bytes: u64,
    /// Bytes of a body that are read before [`App::admit`] is asked.
    pub small_body_bytes: u64,
    /// Bytes of all bodies held at once. Beyond it: 503.
    pub bodies_in_flight_bytes: u64,
    /// Bytes of an answer that is not a stream. Beyond it: 500.
    pub answer_bytes: u64,
    /// Bytes of all whole answers that clients have not taken, those apart that answers share. Beyond it the slowest is cut
    /// off, or the new one gets 503.
    pub answers_in_flight_bytes: u64,
    /// Of them, those to one address (IPv6: one /64).
    pub answers_per_address_bytes: u64,
    /// From the first byte of a request to the end of its header block. Beyond it: 408.
    pub header_timeout: Duration,
    /// From the end of the header block to the end of the body. Beyond it: 408.
    pub body_timeout: Duration,
    /// How long a client may take no byte of its answer. Beyond it: the connection is cut.
    pub write_timeout: Duration,
    /// From the complete request to its answer's beginning. Beyond it: 504.
    pub request_deadline: Duration,
    /// How long a connection may stay open between requests. Beyond it: it is closed.
    pub idle_timeout: Duration,
    /// Complete requests that wait for a thread. Beyond it: 503.
    pub queue_length: usize,
    /// Streams open at once, unless the connections allow fewer ([`Limits::most_streams`]). Beyond it: 503.
    pub streams: usize,
    /// Threads that run [`App::admit`] and [`App::handle`].
    pub request_threads: usize,
    /// File descriptors that stay free for others, but at most a quarter of the process's. A connection that would take one
    /// of them is one too many.
    pub reserved_descriptors: u64,
}

impl Limits {
    /// As the settings say, with descriptors left to the pool of the database.
    pub fn from_settings(settings: &Settings) -> Self {
        let values = &settings.values;
        let pool_size: u32 = values.number("SVC_DATABASE_POOL_SIZE");
        let threads = values.maybe_number("SVC_REQUEST_THREADS");
        Self {
            connections: values.number("SVC_MAX_CONNECTIONS"),
            connections_per_address: values.number("SVC_MAX_CONNECTIONS_PER_ADDRESS"),
            header_bytes: values.number("SVC_MAX_HEADER_BYTES"),
            body_bytes: values.number("SVC_MAX_BODY_BYTES"),
            bodies_in_flight_bytes: values.number("SVC_MAX_BODY_BYTES_IN_FLIGHT"),
            answers_in_flight_bytes: values.number("SVC_MAX_ANSWER_BYTES_IN_FLIGHT"),
            answers_per_address_bytes: values.number("SVC_MAX_ANSWER_BYTES_PER_ADDRESS"),
            header_timeout: values.duration("SVC_HEADER_TIMEOUT_MS"),
            body_timeout: values.duration("SVC_BODY_TIMEOUT_MS"),
            write_timeout: values.duration("SVC_WRITE_TIMEOUT_MS"),
            request_deadline: values.duration("SVC_REQUEST_DEADLINE_MS"),
            idle_timeout: values.duration("SVC_IDLE_TIMEOUT_MS"),
            queue_length: values.number("SVC_QUEUE_LENGTH"),
            streams: values.number("SVC_MAX_STREAMS"),
            request_threads: threads.unwrap_or(pool_size as usize + 4),
            ..Self::default()
        }
        .leaving_to_database(pool_size)
    }

    /// Streams open at once: a sixteenth of the connections stays for requests, which take one briefly.
    pub fn most_streams(&self) -> usize {
        let for_requests = self.connections.div_ceil(16);
        self.streams.min((self.connections - for_requests).max(1))
    }

    /// The same, with descriptors left to a pool of so many connections to the database.
    #[must_use]
    pub fn leaving_to_database(self, pool_size: u32) -> Self {
        let connections = u64::from(pool_size) + CONNECTIONS_BESIDE;
        Self {
            reserved_descriptors: DESCRIPTORS_OF_CONNECTION * connections + OTHER_DESCRIPTORS,
            ..self
        }
    }

    /// Whether a descriptor is among those that stay free, if the process may have `most`. The system gives the lowest free
    /// number, so all below it are taken.
    pub(super) fn is_reserved(&self, descriptor: u64, most: u64) -> bool {
        descriptor >= most - self.reserved_descriptors.min(most / 4)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_address: 10_000,
            header_bytes: 16 * 1024,
            headers: 64,
            body_bytes: 2 * 1024 * 1024,
            small_body_bytes: 16 * 1024,
            bodies_in_flight_bytes: 128 * 1024 * 1024,
            answer_bytes: 64 * 1024 * 1024,
            answers_in_flight_bytes: 256 * 1024 * 1024,
            answers_per_address_bytes: 64 * 1024 * 1024,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            request_deadline: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            queue_length: 1024,
            streams: 8192,
            request_threads: 16,
            reserved_descriptors: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_stay_free_but_not_most_of_them() {
        let limits = Limits {
            reserved_descriptors: 40,
            ..Limits::default()
        };
        for (most, first) in [(256, 216), (80, 60), (0, 0)] {
            assert!(limits.is_reserved(first, most), "{most}");
            assert!(first == 0 || !limits.is_reserved(first - 1, most), "{most}");
        }
        assert!(!Limits::default().is_reserved(79, 80));
    }

    #[test]
    fn streams_leave_a_sixteenth_of_the_connections() {
        let most = |connections, streams| {
            let limits = Limits {
                connections,
                streams,
                ..Limits::default()
            };
            limits.most_streams()
        };
        assert_eq!(most(4096, 10_000), 3840);
        assert_eq!(most(4096, 100), 100);
        assert_eq!(most(3, 10), 2);
        // A server with one connection has nothing to leave.
        assert_eq!(most(1, 10), 1);
    }
}
