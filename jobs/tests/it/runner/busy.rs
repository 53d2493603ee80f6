//! Jobs that come one by one: no handler holds up a claim, and none runs beyond the number of threads.

use super::*;

/// The queue's threads, woken for each job, with a handler that says the name of its thread.
fn woken(
    schema: &Schema,
    threads: usize,
    prefetch: usize,
    handler: impl Fn(u32) -> Outcome + Send + Sync + 'static,
) -> (Runner, Receiver<String>) {
    let (starting, starts) = unbounded();
    let options = QueueOptions {
        threads,
        prefetch,
        poll: NEVER,
        ..options()
    };
    let runner = Runner::builder(schema.database(6))
        .queue("q", options)
        .handle(move |_, task: Task| {
            let name = std::thread::current().name().unwrap().to_owned();
            starting.send(name).unwrap();
            handler(task.0)
        })
        .start()
        .unwrap();
    (runner, starts)
}

#[test]
fn handlers_hold_up_no_claim_and_run_on_threads_of_their_own() {
    let schema = schema();
    let mut client = schema.client();
    let (go_on, may_end) = bounded::<()>(0);
    let (runner, starts) = woken(&schema, 3, 0, move |_| {
        may_end.recv().unwrap();
        Outcome::Done
    });
    for _ in 0..5 {
        // None of the three ends before all have begun.
        let mut names = [0; 3].map(|number| {
            add(&mut client, number);
            runner.handle().wake("q");
            starts.recv_timeout(SOON).unwrap()
        });
        names.sort_unstable();
        assert_eq!(names, ["q-0", "q-1", "q-2"]);
        (0..3).for_each(|_| go_on.send(()).unwrap());
        until("all are done", || rows(&schema) == 0);
    }
    runner.stop(SOON);
}

#[test]
fn no_more_jobs_run_than_there_are_threads() {
    let schema = schema();
    let mut client = schema.client();
    for threads in [1, 2] {
        let inside = Arc::new(AtomicU32::new(0));
        let most = Arc::new(AtomicU32::new(0));
        let (seen, seen_most) = (Arc::clone(&inside), Arc::clone(&most));
        let (go_on, may_end) = bounded::<()>(0);
        let (runner, starts) = woken(&schema, threads, 20, move |_| {
            let now = seen.fetch_add(1, Ordering::SeqCst) + 1;
            seen_most.fetch_max(now, Ordering::SeqCst);
            may_end.recv().unwrap();
            seen.fetch_sub(1, Ordering::SeqCst);
            Outcome::Done
        });
        for number in 0..50 {
            add(&mut client, number);
            runner.handle().wake("q");
        }
        until("every thread is busy", || starts.len() == threads);
        (0..50).for_each(|_| go_on.send(()).unwrap());
        until("all are done", || rows(&schema) == 0);
        assert_eq!(starts.len(), 50);
        assert_eq!(most.load(Ordering::SeqCst), threads as u32);
        runner.stop(SOON);
    }
}

#[test]
fn a_panic_of_a_handler_ends_no_thread() {
    let schema = schema();
    let mut client = schema.client();
    let (runner, starts) = woken(&schema, 1, 0, |task| {
        assert!(task % 2 == 0, "odd");
        Outcome::Done
    });
    for number in 0..8 {
        enqueue(
            &mut client,
            NewJob::of(&Task(number)).unwrap().max_attempts(1),
        )
        .unwrap();
        runner.handle().wake("q");
        starts.recv_timeout(SOON).unwrap();
    }
    until("all have ended", || rows(&schema) == 0);
    assert_eq!(dead_jobs(&mut client, "q", 0, 10).unwrap().len(), 4);
    runner.stop(SOON);
}
