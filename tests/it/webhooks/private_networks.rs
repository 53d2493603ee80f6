//! Private networks are opened and closed between the attempts of one delivery (specification, rule 6 of 6.1).

use super::tls::{certificate, serve};
use super::world::{World, test};
use agent_runtime::outbound::{self, Outbound};
use agent_runtime::server::Options;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));

/// The test runs itself once more in a network namespace whose host has a private address.
#[test]
fn a_retry_goes_out_once_the_setting_opens_private_networks() {
    if TcpListener::bind((RECEIVER, 0)).is_ok() {
        return retry_goes_out();
    }
    // PostgreSQL does not run as root: whoever is mapped to root for the address is mapped back for the test.
    let script = "ip link set lo up && ip address add 10.77.0.1/24 dev lo || exit 1
        test $2 = 0 || exec unshare --map-user=$2 \"$0\" --exact --nocapture \"$1\"
        exec \"$0\" --exact --nocapture \"$1\"";
    let name =
        "webhooks::private_networks::a_retry_goes_out_once_the_setting_opens_private_networks";
    let user = rustix::process::geteuid();
    let inside = Command::new("unshare")
        .arg("--net")
        .args((!user.is_root()).then_some("--map-root-user"))
        .args(["sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .arg(user.as_raw().to_string())
        .output()
        .unwrap();
    let text = [inside.stdout, inside.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(
        inside.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

fn retry_goes_out() {
    let (key, cert) = certificate("20990101000000Z");
    let port = serve(RECEIVER, &key, &cert).port();
    let known = Arc::<AtomicBool>::default();
    let deployed = |known: &Arc<AtomicBool>, opened: bool| {
        let (known, roots) = (known.clone(), cert.clone().into_bytes());
        move |options: &mut Options| {
            options.webhooks.development = false;
            options.webhooks.private_networks = opened;
            options.outbound = Outbound::new(outbound::Options {
                extra_roots_pem: roots,
                lookup: Some(Arc::new(move |_: &str| {
                    match known.load(Ordering::SeqCst) {
                        true => Ok(vec![RECEIVER]),
                        false => Err(std::io::Error::other("no such name")),
                    }
                })),
                ..outbound::Options::default()
            })
            .unwrap();
        }
    };
    let world = World::with(deployed(&known, false));
    // A name that does not resolve yet is taken: the attempts check its addresses.
    let endpoint = world.endpoint(&format!("https://api.test:{port}/"));
    known.store(true, Ordering::SeqCst);
    test(&world, &endpoint);
    let refused = world.attempted(&endpoint, 1);
    assert_eq!(refused["lastError"], "url-refused", "{refused}");
    let message = refused["attempts"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("SVC_WEBHOOK_PRIVATE_NETWORKS=allow"),
        "{message}"
    );

    let clock = world.app.clock.clone();
    let world = world.restarted_with(clock, deployed(&known, true));
    world.run_now();
    let delivery = world.delivered(&endpoint);
    assert_eq!(delivery["attemptCount"], 2, "{delivery}");
    assert_eq!(delivery["attempts"][1]["address"], RECEIVER.to_string());

    // Closed again, the next delivery is refused again.
    let clock = world.app.clock.clone();
    let world = world.restarted_with(clock, deployed(&known, false));
    test(&world, &endpoint);
    assert_eq!(world.attempted(&endpoint, 1)["lastError"], "url-refused");
}
