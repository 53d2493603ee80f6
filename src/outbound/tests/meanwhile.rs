//! What is done while an answer is waited for.

use super::*;
use crossbeam_channel::bounded;

fn post_doing(client: &mut Client, url: &str, meanwhile: &Meanwhile) -> Result<Response, Failure> {
    client.set_meanwhile(Some(meanwhile.clone()));
    post(client, url)
}

#[test]
fn it_is_done_when_the_request_was_sent_and_before_the_answer_comes() {
    let (arrived, wait) = bounded(1);
    let (let_go, held) = bounded(1);
    let server = Server::start(move |mut connection| {
        for _ in 0..2 {
            arrived.send(read_request(&mut connection)).unwrap();
            held.recv().unwrap();
            connection.write_all(HELLO.as_bytes()).unwrap();
        }
    });
    let mut client = outbound().client(Policy::Operator, timeouts());
    // Over a new connection, and over one that was kept.
    for _ in 0..2 {
        let (wait, let_go) = (wait.clone(), let_go.clone());
        let (meanwhile, given) = Meanwhile::new(move || {
            let request = wait.recv_timeout(ms(30_000)).unwrap();
            let_go.send(()).unwrap();
            request
        });
        let answer = post_doing(&mut client, &server.url(), &meanwhile).unwrap();
        assert_eq!(answer.body, b"hello");
        assert!(given.try_recv().unwrap().ends_with("{}"));
        // Once, whoever else would do it.
        meanwhile.run();
        assert!(given.try_recv().is_err());
    }
    assert_eq!(server.accepted(), 1);
}

#[test]
fn over_tls_it_is_done_after_the_handshake() {
    let (key, cert) = tls::certificate();
    let (server, names) = tls::tls_server_at("127.0.0.1", &key, &cert);
    let (meanwhile, given) = Meanwhile::new(move || {
        let began = Instant::now();
        while names.lock().unwrap().is_empty() && began.elapsed() < ms(10_000) {
            std::thread::yield_now();
        }
        names.lock().unwrap().clone()
    });
    let url = format!("https://api.test:{}/", server.address.port());
    post_doing(&mut tls::trusting(&cert), &url, &meanwhile).unwrap();
    let names = given.try_recv().unwrap();
    assert_eq!(names, ["api.test"], "the server has not read the request");
}

#[test]
fn a_connection_that_breaks_under_it_leaves_it_done_once() {
    let server = Server::start(|mut connection| {
        read_request(&mut connection);
    });
    let mut client = outbound().client(Policy::Operator, timeouts());
    let count = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&count);
    let (meanwhile, _) = Meanwhile::new(move || counts.fetch_add(1, Ordering::SeqCst));
    for _ in 0..2 {
        let outcome = post_doing(&mut client, &server.url(), &meanwhile);
        fails(outcome, Kind::Reset);
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn where_nothing_could_be_sent_it_is_left_to_the_caller_and_to_no_later_exchange() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", nobody.local_addr().unwrap());
    drop(nobody);
    let mut client = outbound().client(Policy::Operator, timeouts());
    let (meanwhile, given) = Meanwhile::new(|| "done");
    fails(
        post_doing(&mut client, &url, &meanwhile),
        Kind::ConnectRefused,
    );
    fails(
        post_doing(&mut client, "not a url", &meanwhile),
        Kind::Invalid,
    );
    post(&mut client, &Server::answering(HELLO).url()).unwrap();
    assert!(given.try_recv().is_err());
    assert_eq!(meanwhile.took(), Duration::ZERO);
    meanwhile.run();
    assert_eq!(given.try_recv(), Ok("done"));
}

#[test]
fn an_answer_that_came_while_it_took_longer_than_every_deadline_is_read() {
    let mut client = outbound().client(
        Policy::Operator,
        Timeouts {
            connect: ms(30_000),
            first_byte: ms(500),
            total: ms(1000),
        },
    );
    let (meanwhile, _) = Meanwhile::new(|| std::thread::park_timeout(ms(1500)));
    let server = Server::answering(HELLO);
    let answer = post_doing(&mut client, &server.url(), &meanwhile).unwrap();
    assert_eq!(answer.body, b"hello");
    assert!(meanwhile.took() >= ms(1500), "{:?}", meanwhile.took());
    // One that never comes ends as it does otherwise.
    let silent = Server::start(|mut connection| {
        let _ = connection.read_to_end(&mut Vec::new());
    });
    let (meanwhile, _) = Meanwhile::new(|| ());
    let outcome = post_doing(&mut client, &silent.url(), &meanwhile);
    fails(outcome, Kind::Timeout(Phase::FirstByte));
}

#[test]
fn an_error_of_it_is_what_it_gives_and_the_answer_is_read() {
    let server = Server::answering(HELLO);
    let mut client = outbound().client(Policy::Operator, timeouts());
    let (meanwhile, given) = Meanwhile::new(|| Err::<(), _>("no"));
    assert_eq!(
        post_doing(&mut client, &server.url(), &meanwhile)
            .unwrap()
            .body,
        b"hello"
    );
    assert_eq!(given.try_recv(), Ok(Err("no")));
}
