//! Deadlines and cancels: nothing waits longer than it may.

use super::*;

#[test]
fn a_silent_server_ends_at_the_first_byte_deadline() {
    let server = Server::start(|mut connection| {
        let _ = connection.read_to_end(&mut Vec::new());
    });
    let mut short = timeouts();
    short.first_byte = ms(80);
    lasts_less_than(ms(1000), || {
        let began = Instant::now();
        let mut client = outbound().client(Policy::Operator, short);
        let outcome = post(&mut client, &server.url());
        let took = began.elapsed();
        fails(outcome, Kind::Timeout(Phase::FirstByte));
        assert!(took >= ms(80), "{took:?}");
        took
    });
}

#[test]
fn a_drip_feed_ends_at_the_whole_deadline() {
    for head in [
        "HTTP/1.1 200 OK\r\nx-drip: ",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n400\r\n",
    ] {
        let server = Server::start(move |mut connection| {
            read_request(&mut connection);
            connection.write_all(head.as_bytes()).unwrap();
            while connection.write_all(b"a").is_ok() {
                std::thread::park_timeout(ms(10));
            }
        });
        let mut short = timeouts();
        short.total = ms(200);
        lasts_less_than(ms(1000), || {
            let began = Instant::now();
            let mut client = outbound().client(Policy::Operator, short);
            let failure = post(&mut client, &server.url()).unwrap_err();
            let took = began.elapsed();
            assert!(took >= ms(200), "{took:?}");
            match failure.kind() {
                Kind::Timeout(Phase::FirstByte | Phase::Body) => took,
                // A busy machine may not come to the request in time.
                Kind::Timeout(_) => Duration::MAX,
                other => panic!("{other:?}"),
            }
        });
    }
}

#[test]
fn a_server_that_reads_nothing_ends_at_the_whole_deadline() {
    let (hold, held) = crossbeam_channel::unbounded::<TcpStream>();
    let server = Server::start(move |connection| hold.send(connection).unwrap());
    let mut short = timeouts();
    short.total = ms(200);
    let big = vec![b' '; 32 * 1024 * 1024];
    let mut kinds = (0..6).map(|_| {
        let mut client = outbound().client(Policy::Operator, short);
        let outcome = client.post_json(&server.url(), &[], &big, 10);
        outcome.unwrap_err().kind()
    });
    // A busy machine may not be connected in time.
    let kind = kinds.find(|kind| *kind != Kind::Timeout(Phase::Connect));
    assert_eq!(kind, Some(Kind::Timeout(Phase::Send)));
    drop(held);
}

/// Runs an exchange, cancels it once `ready` says so, and gives back how long the end took.
pub(super) fn cancelled(
    mut client: Client,
    url: String,
    ready: impl FnOnce(),
) -> (Client, Duration) {
    let handle = client.cancel_handle();
    let exchange = std::thread::Builder::new()
        .name("exchange".to_owned())
        .spawn(move || {
            let failure = post(&mut client, &url).unwrap_err();
            (client, failure)
        })
        .unwrap();
    ready();
    std::thread::park_timeout(ms(50));
    let began = Instant::now();
    handle.cancel();
    let (client, failure) = exchange.join().unwrap();
    assert_eq!(failure.kind(), Kind::Cancelled, "{failure}");
    assert!(handle.is_cancelled());
    (client, began.elapsed())
}

#[test]
fn a_cancel_ends_a_blocked_read_at_once_and_the_client_lives_on() {
    for head in [
        "",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n",
    ] {
        let (arrived, wait) = crossbeam_channel::bounded(1);
        let server = Server::start(move |mut connection| {
            read_request(&mut connection);
            connection.write_all(head.as_bytes()).unwrap();
            arrived.send(()).unwrap();
            let _ = connection.read(&mut [0]);
        });
        let outbound = outbound();
        let mut kept = None;
        lasts_less_than(AT_ONCE, || {
            let client = outbound.client(Policy::Operator, timeouts());
            let (client, took) = cancelled(client, server.url(), || wait.recv().unwrap());
            kept = Some(client);
            took
        });
        let mut client = kept.unwrap();
        let well = Server::answering(HELLO);
        fails(post(&mut client, &well.url()), Kind::Cancelled);
        let _next = client.cancel_handle();
        post(&mut client, &well.url()).unwrap();
    }
}

#[test]
fn a_cancel_ends_a_kept_connection_and_an_old_handle_does_not() {
    lasts_less_than(AT_ONCE, || {
        let (arrived, wait) = crossbeam_channel::unbounded();
        let server = Server::start(move |mut connection| {
            read_request(&mut connection);
            connection.write_all(HELLO.as_bytes()).unwrap();
            read_request(&mut connection);
            arrived.send(()).unwrap();
            let _ = connection.read(&mut [0]);
        });
        let mut client = outbound().client(Policy::Operator, timeouts());
        let old = client.cancel_handle();
        post(&mut client, &server.url()).unwrap();
        let (_, took) = cancelled(client, server.url(), || {
            wait.recv().unwrap();
            old.cancel();
        });
        assert_eq!(server.accepted(), 1);
        took
    });
}

#[test]
fn a_cancel_ends_a_connect_at_once() {
    let (_listener, address, _fill) = full_backlog();
    lasts_less_than(AT_ONCE, || {
        let client = outbound().client(Policy::Operator, timeouts());
        let (_, took) = cancelled(client, format!("http://{address}/"), || {});
        took
    });
}

#[test]
fn a_connect_ends_at_its_deadline() {
    let (_listener, address, _fill) = full_backlog();
    let mut short = timeouts();
    short.connect = ms(100);
    lasts_less_than(ms(1000), || {
        let began = Instant::now();
        let mut client = outbound().client(Policy::Operator, short);
        let outcome = post(&mut client, &format!("http://{address}/"));
        let took = began.elapsed();
        fails(outcome, Kind::Timeout(Phase::Connect));
        assert!(took >= ms(90), "{took:?}");
        took
    });
}

/// A listener that takes no more connections: whoever comes next is not answered.
fn full_backlog() -> (socket2::Socket, SocketAddr, Vec<TcpStream>) {
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener
        .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let (mut fill, mut in_vain) = (Vec::new(), 0);
    // A busy machine may be too late for one connection.
    while in_vain < 3 {
        match TcpStream::connect_timeout(&address, ms(100)) {
            Ok(connection) => fill.push(connection),
            Err(_) => in_vain += 1,
        }
    }
    (listener, address, fill)
}

#[test]
fn look_ups_are_bounded_and_cancelled_at_once() {
    let (release, blocked) = crossbeam_channel::unbounded::<()>();
    let (began_lookup, looking) = crossbeam_channel::unbounded();
    let outbound = Outbound::new(Options {
        operator_resolver_threads: 1,
        resolver_queue: 1,
        lookup: Some(Arc::new(move |_: &str| {
            began_lookup.send(()).unwrap();
            let _ = blocked.recv();
            Ok(vec![IpAddr::from([127, 0, 0, 1])])
        })),
        ..Options::default()
    })
    .unwrap();
    let mut is_looking = false;
    lasts_less_than(AT_ONCE, || {
        let client = outbound.client(Policy::Operator, timeouts());
        // Whoever comes later waits for the same look-up.
        let (_, took) = cancelled(client, "http://stuck.test/".to_owned(), || {
            if !std::mem::replace(&mut is_looking, true) {
                looking.recv().unwrap();
            }
        });
        took
    });
    let mut short = timeouts();
    short.connect = ms(50);
    let mut client = outbound.client(Policy::Operator, short);
    let late = post(&mut client, "http://queued.test/");
    fails(late, Kind::Busy);
    let message = fails(post(&mut client, "http://third.test/"), Kind::Busy);
    assert!(message.contains("too many"), "{message}");
    drop(release);
}

#[test]
fn a_name_that_is_being_looked_up_is_not_looked_up_again() {
    let (release, blocked) = crossbeam_channel::bounded::<()>(0);
    let (began_lookup, looking) = crossbeam_channel::unbounded();
    let server = Server::answering(HELLO);
    let outbound = Outbound::new(Options {
        operator_resolver_threads: 2,
        lookup: Some(Arc::new(move |_: &str| {
            began_lookup.send(()).unwrap();
            let _ = blocked.recv();
            Ok(vec![IpAddr::from([127, 0, 0, 1])])
        })),
        ..Options::default()
    })
    .unwrap();
    let url = format!("http://slow.test:{}/", server.address.port());
    let one = || post(&mut outbound.client(Policy::Operator, timeouts()), &url).unwrap();
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        looking.recv().unwrap();
        // Whoever still comes, comes to the same look-up: the other thread has time for one more.
        assert!(looking.recv_timeout(ms(200)).is_err());
        drop(release);
        for thread in asking {
            thread.join().unwrap();
        }
    });
    // An answer is of the moment.
    one();
    assert!(looking.try_recv().is_ok());
}

/// Posts to a name whose look-up gets no answer under one policy, and meanwhile to another one under
/// the others.
fn is_stuck_alone(stuck: Policy, others: &[Policy]) {
    let (release, blocked) = crossbeam_channel::bounded::<()>(0);
    let (began_lookup, looking) = crossbeam_channel::unbounded();
    let server = Server::answering(HELLO);
    let outbound = Outbound::new(Options {
        operator_resolver_threads: 1,
        resolver_threads: 1,
        receiver_resolver_threads: 2,
        lookup: Some(Arc::new(move |name: &str| {
            if name == "stuck.test" {
                began_lookup.send(()).unwrap();
                let _ = blocked.recv();
            }
            Ok(vec![IpAddr::from([127, 0, 0, 1])])
        })),
        ..Options::default()
    })
    .unwrap();
    let url = |host: &str| format!("http://{host}:{}/", server.address.port());
    let mut caller = outbound.client(stuck, timeouts());
    let (cancel, at) = (caller.cancel_handle(), url("stuck.test"));
    let thread = std::thread::Builder::new().name("stuck".to_owned());
    let thread = thread.spawn(move || post(&mut caller, &at).unwrap_err().kind());
    let thread = thread.unwrap();
    looking.recv().unwrap();
    for policy in others {
        let mut client = outbound.client(*policy, timeouts());
        client.set_well(true);
        post(&mut client, &url("fine.test")).unwrap();
    }
    cancel.cancel();
    assert_eq!(thread.join().unwrap(), Kind::Cancelled);
    drop(release);
}

#[test]
fn a_receiver_s_stuck_look_up_holds_up_no_other_caller() {
    let local = Policy::Tenant(HostAccess::Local);
    let others = [Policy::Operator, local, super::receivers::DEVELOPMENT];
    is_stuck_alone(super::receivers::DEVELOPMENT, &others);
}

#[test]
fn a_tenant_s_stuck_look_up_does_not_hold_up_what_the_operator_configured() {
    let others = [Policy::Operator, super::receivers::DEVELOPMENT];
    is_stuck_alone(DEPLOYED, &others);
    is_stuck_alone(Policy::Tenant(HostAccess::Local), &others);
}

/// A server that answers with a head and with each piece after its pause, and then is silent.
fn dripping(pieces: &'static [(u64, &'static str)]) -> Server {
    Server::start(move |mut connection| {
        read_request(&mut connection);
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n";
        connection.write_all(head.as_bytes()).unwrap();
        for (pause, piece) in pieces {
            std::thread::park_timeout(ms(*pause));
            if connection.write_all(piece.as_bytes()).is_err() {
                return;
            }
        }
        let _ = connection.read(&mut [0]);
    })
}

fn with_idle(first_byte: u64, idle: u64) -> Timeouts {
    Timeouts {
        first_byte: ms(first_byte),
        idle: Some(ms(idle)),
        ..timeouts()
    }
}

#[test]
fn an_answer_that_goes_on_may_take_longer_than_the_limit_between_two_bytes() {
    let server = dripping(&[
        (0, "a"),
        (300, "b"),
        (300, "c"),
        (300, "d"),
        (300, "e"),
        (300, "f"),
    ]);
    let mut client = outbound().client(Policy::Operator, with_idle(30_000, 1400));
    assert_eq!(post(&mut client, &server.url()).unwrap().body, b"abcdef");
}

#[test]
fn an_answer_that_stops_ends_at_the_limit_between_two_bytes() {
    // Bytes that arrive with the head count as well.
    let dripped: [&'static [(u64, &'static str)]; 2] = [&[(0, "a")], &[(100, "ab")]];
    for pieces in dripped {
        let server = dripping(pieces);
        let mut client = outbound().client(Policy::Operator, with_idle(20_000, 300));
        let began = Instant::now();
        let failure = post(&mut client, &server.url()).unwrap_err();
        assert_eq!(failure.kind(), Kind::Timeout(Phase::Body), "{failure}");
        assert_eq!(failure.limit(), Some(Limit::Idle(ms(300))));
        assert!(began.elapsed() < ms(10_000), "{:?}", began.elapsed());
    }
}

#[test]
fn the_first_byte_of_a_body_has_the_time_of_a_first_byte() {
    let server = dripping(&[(600, "abcdef")]);
    let mut client = outbound().client(Policy::Operator, with_idle(20_000, 100));
    assert_eq!(post(&mut client, &server.url()).unwrap().body, b"abcdef");
    let server = dripping(&[]);
    let mut client = outbound().client(Policy::Operator, with_idle(300, 100));
    let failure = post(&mut client, &server.url()).unwrap_err();
    assert_eq!(
        failure.limit(),
        Some(Limit::FirstByte(ms(300))),
        "{failure}"
    );
}

#[test]
fn the_limit_that_ended_an_exchange_is_named() {
    let server = dripping(&[(0, "a")]);
    let short = Timeouts {
        total: ms(500),
        ..with_idle(20_000, 20_000)
    };
    let mut client = outbound().client(Policy::Operator, short);
    let failure = post(&mut client, &server.url()).unwrap_err();
    assert_eq!(failure.limit(), Some(Limit::Total(ms(500))), "{failure}");
    let silent = Server::start(|mut connection| {
        let _ = connection.read_to_end(&mut Vec::new());
    });
    let mut client = outbound().client(Policy::Operator, with_idle(300, 20_000));
    let failure = post(&mut client, &silent.url()).unwrap_err();
    assert_eq!(
        failure.limit(),
        Some(Limit::FirstByte(ms(300))),
        "{failure}"
    );
}
