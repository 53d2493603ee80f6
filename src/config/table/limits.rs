//! The limits of the front door, the database and runs. Every bound of the service is a number here
//! with a range, so no setting can remove a bound (`bounded-everything`).

use super::setting::{Item, Kind, Setting, Source};

/// The default database of development mode (section 1.3: local, port 5432).
const DEVELOPMENT_DATABASE: &str = "postgres://localhost:5432/agent_runtime";

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

const fn count(name: &'static str, min: u64, max: u64, meaning: &'static str) -> Setting {
    let unit = "";
    Setting::new(
        name,
        Kind::Integer { min, max, unit },
        Source::Ours,
        meaning,
    )
}

const fn bytes(name: &'static str, min: u64, max: u64, meaning: &'static str) -> Setting {
    let unit = "bytes";
    Setting::new(
        name,
        Kind::Integer { min, max, unit },
        Source::Ours,
        meaning,
    )
}

const fn milliseconds(name: &'static str, min: u64, max: u64, meaning: &'static str) -> Setting {
    let unit = "milliseconds";
    Setting::new(
        name,
        Kind::Integer { min, max, unit },
        Source::Ours,
        meaning,
    )
}

pub(super) static DATABASE: &[Setting] = &[
    Setting::new(
        "SVC_DATABASE_URL",
        Kind::DatabaseUrl,
        Source::Meant,
        "The PostgreSQL database. sslmode and sslrootcert in its query mean what they mean to \
         libpq.",
    )
    .secret()
    .required_outside_development()
    .default_derived(
        "postgres://localhost:5432/agent_runtime in development; required outside it",
        |_, development| development.then(|| DEVELOPMENT_DATABASE.to_owned()),
    ),
    count(
        "SVC_DATABASE_POOL_SIZE",
        2,
        500,
        "How many connections to the database this process holds at most for requests.",
    )
    .default_value("12"),
    milliseconds(
        "SVC_DATABASE_CHECKOUT_TIMEOUT_MS",
        10,
        MINUTE_MS,
        "How long a request waits for a free connection before it is answered 503.",
    )
    .default_value("1000"),
    milliseconds(
        "SVC_DATABASE_STATEMENT_TIMEOUT_MS",
        100,
        10 * MINUTE_MS,
        "How long one statement may run.",
    )
    .default_value("10000"),
];

pub(super) static DOOR: &[Setting] = &[
    count(
        "SVC_MAX_CONNECTIONS",
        1,
        1_000_000,
        "Open client connections at most.",
    )
    .default_value("4096"),
    count(
        "SVC_MAX_CONNECTIONS_PER_ADDRESS",
        1,
        1_000_000,
        "Open client connections from one address at most. Raise it to SVC_MAX_CONNECTIONS behind \
         a proxy.",
    )
    .default_value("1024"),
    bytes(
        "SVC_MAX_HEADER_BYTES",
        8 * KIB,
        256 * KIB,
        "The longest request line and headers together; a longer one is answered 431.",
    )
    .default_value("16384"),
    bytes(
        "SVC_MAX_BODY_BYTES",
        64 * KIB,
        64 * MIB,
        "The longest body that any route takes; a route may take less. A longer one is answered \
         413.",
    )
    .default_value("2097152"),
    bytes(
        "SVC_MAX_BODY_BYTES_IN_FLIGHT",
        MIB,
        64 * KIB * MIB,
        "All request bodies in memory together; beyond it requests with a body are answered 503. \
         It is at least SVC_MAX_BODY_BYTES.",
    )
    .default_value("268435456"),
    bytes(
        "SVC_MAX_ANSWER_BYTES_IN_FLIGHT",
        MIB,
        64 * KIB * MIB,
        "All answers in memory together that clients have not taken, streams apart; beyond it the \
         answer whose client reads slowest is cut off.",
    )
    .default_value("268435456"),
    bytes(
        "SVC_MAX_ANSWER_BYTES_PER_ADDRESS",
        MIB,
        64 * KIB * MIB,
        "Of these answers, those to one address. Raise it to SVC_MAX_ANSWER_BYTES_IN_FLIGHT behind \
         a proxy.",
    )
    .default_value("67108864"),
    milliseconds(
        "SVC_HEADER_TIMEOUT_MS",
        100,
        10 * MINUTE_MS,
        "How long a client may take for a request's headers.",
    )
    .default_value("10000"),
    milliseconds(
        "SVC_BODY_TIMEOUT_MS",
        100,
        10 * MINUTE_MS,
        "How long a client may take for a request's body; then it is answered 408.",
    )
    .default_value("30000"),
    milliseconds(
        "SVC_WRITE_TIMEOUT_MS",
        100,
        10 * MINUTE_MS,
        "How long a client may take nothing of its answer before the connection is closed.",
    )
    .default_value("30000"),
    milliseconds(
        "SVC_REQUEST_DEADLINE_MS",
        100,
        10 * MINUTE_MS,
        "How long a request may wait and be worked on together; then it is answered 504. Streams \
         have no such end.",
    )
    .default_value("15000"),
    milliseconds(
        "SVC_IDLE_TIMEOUT_MS",
        100,
        60 * MINUTE_MS,
        "How long a connection is kept between two requests. Longer than a proxy in front keeps its \
         own, so that the proxy never sends on one that is being closed.",
    )
    .default_value("75000"),
    count(
        "SVC_QUEUE_LENGTH",
        1,
        100_000,
        "Requests that wait for a thread at most; beyond it they are answered 503.",
    )
    .default_value("1024"),
    count(
        "SVC_REQUEST_THREADS",
        1,
        1024,
        "Threads that answer requests.",
    )
    .default_described("SVC_DATABASE_POOL_SIZE plus 4"),
    count(
        "SVC_MAX_DENIALS_PER_MINUTE",
        1,
        1_000_000,
        "How often one credential may be refused by the access check in a minute, all at once or \
         spread; beyond it its requests are answered 429 before anything is checked. A session \
         counts as the token that it came from, or else as its person.",
    )
    .default_value("120"),
    count(
        "SVC_MAX_STREAMS",
        1,
        1_000_000,
        "Open event streams at most, and no more than 15/16 of SVC_MAX_CONNECTIONS; beyond it they are \
         answered 503. One tenant gets nine tenths of them; beyond it its streams are answered 429.",
    )
    .default_value("10000"),
    count(
        "SVC_STREAM_THREADS",
        1,
        64,
        "Threads that write all event streams.",
    )
    .default_value("2"),
    bytes(
        "SVC_STREAM_BUFFER_BYTES",
        4 * KIB,
        16 * MIB,
        "What may wait for one slow reader of a stream; beyond it the reader gets a reset and is \
         closed.",
    )
    .default_value("65536"),
    milliseconds(
        "SVC_SHUTDOWN_TIMEOUT_MS",
        0,
        HOUR_MS,
        "How long a stop waits for what is in flight.",
    )
    .default_value("20000"),
];

pub(super) static RUNS: &[Setting] = &[
    count(
        "SVC_RUN_THREADS",
        1,
        2048,
        "Runs of one tenant that this process works on at once at most. It has twice as many threads for \
         runs: a run begins only while its tenant's runs hold fewer of them than are free. One \
         tenant holds half of them at most, the next one half of the rest, and so on.",
    )
    .default_value("256"),
    milliseconds(
        "SVC_RUN_LEASE_MS",
        500,
        10 * MINUTE_MS,
        "How long after a process died another takes over its runs.",
    )
    .default_value("15000"),
    milliseconds(
        "SVC_JOB_POLL_MS",
        10,
        MINUTE_MS,
        "How often a process looks for work that another one queued.",
    )
    .default_value("200"),
    bytes(
        "SVC_TOOL_MAX_RESPONSE_BYTES",
        KIB,
        64 * MIB,
        "The longest answer of an HTTP tool; a longer one fails the call.",
    )
    .default_value("1048576"),
    Setting::new(
        "SVC_PAYLOAD_RETENTION_DAYS",
        Kind::Integer {
            min: 1,
            max: 36500,
            unit: "days",
        },
        Source::Ours,
        "How long after a run's end what it was given, said and answered is kept, with its messages in \
         its conversation. Then it is erased; the run's row stays.",
    )
    .default_described("none: kept for ever"),
    Setting::new(
        "SVC_MAX_RUN_DAYS",
        Kind::Integer {
            min: 1,
            max: 400,
            unit: "days",
        },
        Source::Ours,
        "How long after its begin a run of a flow ends, whatever it waits for. It fails with an error that no `catch` takes.",
    )
    .default_value("400"),
    count(
        "SVC_MAX_RUN_DEATHS",
        2,
        50,
        "How often in a row the server may die while it carries a run on, without a step done in between. Then the run \
         fails, so that it does not end the next server too. From half of it on such runs begin one at a time.",
    )
    .default_value("20"),
    count(
        "SVC_MAX_FLOW_TASKS",
        100,
        1_000_000,
        "Tasks that one run of a flow enters at most; beyond it the run fails.",
    )
    .default_value("10000"),
    bytes(
        "SVC_MAX_FLOW_DATA_BYTES",
        16 * KIB,
        MIB,
        "The data of a flow at most, and its context, as JSON; its stack of tasks, with the items of \
         loops, has twice as much. Beyond it the task fails with status 413.",
    )
    .default_value("262144"),
    count(
        "SVC_MAX_FLOW_CHILDREN",
        1,
        1000,
        "Iterations of one parallel loop of a flow at most; beyond it the task fails with status 413.",
    )
    .default_value("1000"),
    count(
        "SVC_MAX_RUNS_BELOW_ROOT",
        10,
        10_000_000,
        "Runs below one run at the top of a tree at most, at any depth, finished ones included. Beyond it a task that \
         begins runs fails with status 429, and a model's call of a tool that is an agent or a flow answers an error.",
    )
    .default_value("100000"),
    count(
        "SVC_MAX_UNFINISHED_RUNS",
        10,
        10_000_000,
        "Runs of one tenant that have not ended at most. Beyond it a start is refused with 429, and a child run as by \
         SVC_MAX_RUNS_BELOW_ROOT. Both bounds are checked by counts now and then, and may be exceeded by some hundred \
         runs for each process.",
    )
    .default_value("1000000"),
    count(
        "SVC_MAX_FLOW_EXPRESSION_STEPS",
        10_000,
        10_000_000,
        "Steps of one expression of a flow at most, and a fifth of those of all between two effects; \
         beyond it the task fails with status 400. A million takes less than 100 ms.",
    )
    .default_value("1000000"),
    Setting::new(
        "SVC_MODEL_KEYS",
        Kind::List(Item::ModelKey),
        Source::Ours,
        "The API keys that a tenant's model provider may name, each with the one origin \
         (scheme://host[:port]) that it may be sent to. A key's bytes come from the file NAME in \
         SVC_MODEL_KEYS_DIR, from the systemd credential NAME or from the environment variable \
         NAME, exactly one of them. NAME is 1 to 100 letters, digits, _, . and -, and does not \
         begin with SVC_.",
    )
    .default_described("none"),
    Setting::new(
        "SVC_MODEL_KEYS_DIR",
        Kind::AbsolutePath,
        Source::Ours,
        "The directory of the key files that SVC_MODEL_KEYS names, each readable by its owner \
         alone.",
    ),
    milliseconds(
        "SVC_MODEL_CONNECT_TIMEOUT_MS",
        10,
        10 * MINUTE_MS,
        "How long a connection to a model provider may take.",
    )
    .default_value("10000"),
    milliseconds(
        "SVC_MODEL_FIRST_BYTE_TIMEOUT_MS",
        10,
        HOUR_MS,
        "How long a model provider may take for the first byte of its answer, and in all to load its model. A provider may have \
         a limit of its own.",
    )
    .default_value("120000"),
    milliseconds(
        "SVC_MODEL_IDLE_TIMEOUT_MS",
        10,
        HOUR_MS,
        "How long a model provider may send nothing in the middle of its answer; comments and pings count as something. A \
         provider may have a limit of its own.",
    )
    .default_value("120000"),
    milliseconds(
        "SVC_MODEL_TOTAL_TIMEOUT_MS",
        10,
        24 * HOUR_MS,
        "How long one model call may take in all. A provider may have a limit of its own. No call takes longer than its turn.",
    )
    .default_value("600000"),
    count(
        "SVC_MODEL_ATTEMPTS",
        1,
        20,
        "How often a model call is tried in all when the provider answers 429 or 5xx or not at \
         all. A provider may have a number of its own.",
    )
    .default_value("4"),
];
