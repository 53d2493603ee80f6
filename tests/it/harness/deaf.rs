//! Where nobody listens.

use socket2::{Domain, Socket, Type};
use std::net::SocketAddr;

/// A place on this host where nothing listens, and where nothing else will as long as this stands.
pub(crate) struct Deaf {
    address: SocketAddr,
    _socket: Socket,
}

impl Deaf {
    pub(crate) fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
        let socket = socket.unwrap();
        // Bound and never listening: the port is taken, and connections to it are refused.
        socket
            .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
            .unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        Self {
            address,
            _socket: socket,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}
