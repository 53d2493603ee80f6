//! The door's listening socket.

use crate::error::{Code, Error, Result};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: i32 = 1024;

/// Opens the socket. `[::]` takes IPv4 as well, and is `0.0.0.0` on a host without IPv6.
///
/// # Errors
/// `conflict`: the address is taken, or not this host's.
pub(super) fn open(address: SocketAddr) -> Result<TcpListener> {
    let at = |address: SocketAddr| {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        if address.is_ipv6() {
            socket.set_only_v6(!address.ip().is_unspecified())?;
        }
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(TcpListener::from(socket))
    };
    let everywhere = address.is_ipv6() && address.ip().is_unspecified();
    at(address)
        .or_else(|error: std::io::Error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) if everywhere => {
                at(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
            }
            _ => Err(error),
        })
        .map_err(|error| {
            Error::new(
                Code::Conflict,
                format!(
                    "{address} cannot be listened on: {error}. Choose another SVC_HTTP_PORT or SVC_BIND_ADDRESS."
                ),
            )
        })
}
