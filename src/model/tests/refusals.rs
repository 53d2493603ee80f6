//! Calls whose server refuses a part of the request.

use super::*;

fn refuses(status: u16, message: &str) -> Step {
    Step::json(status, &json!({"error": {"message": message}}))
}

fn ask_of(provider: &Provider) -> Result<Completion, ModelFailure> {
    let clock = Clock::system();
    let mut client = client(timeouts());
    chat(&clock, &mut client, provider, &ask("hi"), &mut |_| {})
}

#[test]
fn what_is_refused_by_name_is_left_out_and_remembered() {
    let server = start(vec![
        refuses(
            400,
            "Unrecognized request argument supplied: stream_options",
        ),
        refuses(
            400,
            "Your organization must be verified to stream this model.",
        ),
        Step::text("one"),
        Step::text("two"),
    ]);
    let provider = at(&server);
    assert_eq!(ask_of(&provider).unwrap().text, "one");
    assert_eq!(ask_of(&provider).unwrap().text, "two");
    let requests = server.requests();
    let streams: Vec<&Value> = requests.iter().map(|seen| &seen.body["stream"]).collect();
    assert_eq!(streams, [true, true, false, false]);
    assert!(requests[0].body.get("stream_options").is_some());
    assert!(requests[1].body.get("stream_options").is_none());
    // Of another provider nothing is known.
    let other = at(&server);
    assert!(other.memory.of(&Clock::system(), &of(&other)).is_empty());
}

fn of(provider: &Provider) -> Server {
    Server {
        provider_id: provider.id,
        base_url: provider.base_url.clone(),
        model: "test-model".to_owned(),
    }
}

#[test]
fn a_providers_row_says_what_is_refused_from_the_start() {
    let server = start(vec![Step::text("one")]);
    let mut provider = at(&server);
    provider.options.quirks = vec![Quirk::NoStreaming];
    ask_of(&provider).unwrap();
    assert_eq!(server.requests()[0].body["stream"], false);
}

#[test]
fn a_refusal_that_nothing_can_be_left_out_for_is_the_answer() {
    let refused = "Unrecognized request argument supplied: stream_options";
    let server = start(vec![refuses(400, refused), refuses(400, refused)]);
    let provider = at(&server);
    let failure = ask_of(&provider).unwrap_err();
    assert!(failure.why.message.contains("stream_options"));
    assert_eq!(server.requests().len(), 2);
    // It did not help, so it is not remembered.
    assert!(
        provider
            .memory
            .of(&Clock::system(), &of(&provider))
            .is_empty()
    );
}

#[test]
fn a_call_learns_so_often_and_no_more() {
    let names = [
        "stream_options",
        "temperature",
        "top_p",
        "seed",
        "presence_penalty",
    ];
    let refused = |name: &&str| refuses(400, &format!("Unsupported parameter: {name}"));
    let server = start(names.iter().map(refused).collect());
    let mut request = ask("hi");
    request.parameters = serde_json::from_value(
        json!({"temperature": 1, "topP": 1, "seed": 1, "presencePenalty": 1}),
    )
    .unwrap();
    let clock = Clock::system();
    let mut client = client(timeouts());
    let failure = chat(&clock, &mut client, &at(&server), &request, &mut |_| {}).unwrap_err();
    assert!(failure.why.message.contains("presence_penalty"));
    assert_eq!(server.requests().len(), 1 + quirks::LEARNED_MOST);
}

#[test]
fn an_error_after_text_is_not_tried_without_anything() {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": "Hel"}}]});
    let error = json!({"error": {"code": 400, "message": "stream_options is not supported"}});
    let server = start(vec![events(&[chunk, error.clone()]), events(&[error])]);
    assert!(ask_of(&at(&server)).is_err());
    assert_eq!(server.requests().len(), 1);
    // Before it, it is.
    assert_eq!(ask_of(&at(&server)).unwrap().text, "end of the script");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_provider_has_headers_of_its_own() {
    let server = start(vec![Step::text("one")]);
    let mut provider = at(&server);
    provider.options.key_header = Some("api-key".to_owned());
    provider.headers = vec![("x-team".to_owned(), Secret::new("blue"))];
    ask_of(&provider).unwrap();
    let seen = &server.requests()[0];
    let header = |name: &str| seen.headers.iter().find(|(n, _)| n == name);
    assert_eq!(header("authorization"), None);
    assert_eq!(header("api-key").unwrap().1, KEY);
    assert_eq!(header("x-team").unwrap().1, "blue");
}
