//! Tries of a list: what limits them, and where they go on.

use super::*;

/// A list that fails each time, with a policy.
fn failing(retry: Value) -> Definition {
    let raise =
        json!({"error": {"type": "https://example.com/busy", "status": 503, "title": "Busy"}});
    let tasks = json!([{"it": {"try": [{"no": {"raise": raise}}], "catch": {"retry": retry}}}]);
    flow(tasks, json!({}))
}

#[test]
fn all_tries_together_take_so_long_and_no_longer() {
    let slow = |limit: Value| {
        let tasks = json!([
            {"it": {"try": [{"sleep": {"wait": {"hours": 1}}}], "catch": {"retry": {"limit": limit}}}},
        ]);
        run(&flow(tasks, json!({})), json!({"most": "PT10S"}))
    };
    let seconds = |went: &Went| -> Vec<f64> {
        let waits = went.waits.iter();
        waits.map(|(_, seconds)| *seconds).collect()
    };
    for limit in [json!("PT10S"), json!("${ .most }")] {
        let went = slow(json!({"duration": limit}));
        assert_eq!(seconds(&went), [10.0]);
        assert!(went.failure().contains("(status 408)"));
    }
    // The second try has what is left.
    let went = slow(json!({"duration": "PT10S", "attempt": {"duration": "PT6S"}}));
    assert_eq!(seconds(&went), [6.0, 0.0, 4.0]);
    assert!(went.failure().contains("(status 408)"));
}

#[test]
fn a_limit_sees_no_error() {
    let document = json!({"dsl": "1.0.3", "namespace": "test", "name": "flow", "version": "1.0.0"});
    for limit in [
        json!({"duration": "${ $error.detail }"}),
        json!({"attempt": {"duration": "${ $error.detail }"}}),
    ] {
        let retry = json!({"delay": "${ $error.detail }", "limit": limit});
        let tasks = json!([{"it": {"try": [{"a": {"set": {"n": 1}}}], "catch": {"retry": retry}}}]);
        let faults = check(&json!({"document": document, "do": tasks})).unwrap_err();
        let paths: Vec<&str> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(paths.len(), 1, "{paths:?}");
        assert!(paths[0].contains(".retry.limit."), "{paths:?}");
    }
}

#[test]
fn a_delay_is_a_day_at_most() {
    let day = 86_400.0;
    for retry in [
        json!({"delay": "${ \"P9D\" }", "backoff": {"exponential": {}}}),
        json!({"delay": "PT23H", "jitter": {"from": "PT23H", "to": "PT23H"}}),
        json!({"delay": "PT1S", "jitter": {"from": "${ \"P9D\" }", "to": "${ \"P9D\" }"}}),
    ] {
        let mut retry = retry;
        retry["limit"] = json!({"attempt": {"count": 2}});
        let went = run(&failing(retry), json!({}));
        assert_eq!(went.waits, [("/do/0/it".to_owned(), day)]);
    }
}

#[test]
fn a_dry_run_does_not_wait_for_another_try() {
    let definition = failing(json!({"delay": "P1D"}));
    let about = About {
        is_dry_run: true,
        ..about(json!({}))
    };
    let decision = next::next(&definition, &about, (None, None), about.started_at);
    assert!(
        matches!(decision.next, Next::Wait { duration, .. } if duration.is_zero()),
        "{decision:?}"
    );
}

#[test]
fn a_run_that_takes_up_another_goes_on_with_the_try_that_was_to_come() {
    let retry = json!({"delay": "PT30S", "limit": {"attempt": {"count": 3}, "duration": "PT5M"}});
    let (definition, about) = (failing(retry), about(json!({})));
    let first = next::next(&definition, &about, (None, None), about.started_at);
    let failed = Flow {
        known: Known::of_tests(definition),
        about,
        state: first.flow_state,
    };
    let later = failed.about.started_at + Duration::from_secs(100);
    let paused = Step {
        status: StepStatus::Running,
        result: None,
        ..waited()
    };
    let stand = failed.stand(Uuid::nil(), &paused, false, later).unwrap();
    let retry::Stand::Again(state) = stand else {
        panic!("{stand:?}");
    };
    let again = Flow {
        state: Some(state),
        ..failed
    };
    // The second try fails, and there is one more.
    let decision = again.next(None, later);
    let Next::Wait { duration, .. } = decision.next else {
        panic!("{decision:?}");
    };
    assert_eq!(duration, Duration::from_secs(30));
    let row = decision.flow_state.unwrap();
    assert_eq!(row.frames[0]["at"]["pause"]["attempt"], 3);
    let after = later + Duration::from_secs(30);
    let stands = (Some(&row), Some(&waited()));
    let last = next::next(&again.known.definition, &again.about, stands, after);
    assert!(
        matches!(last.next, Next::End(End::Failed { .. })),
        "{last:?}"
    );
}

#[test]
fn an_author_s_error_has_a_status_of_an_error() {
    let raised = |status: &str| {
        let raise =
            json!({"error": {"type": "https://example.com/no", "status": status, "title": "No"}});
        run(
            &flow(json!([{"no": {"raise": raise}}]), json!({})),
            json!({}),
        )
        .failure()
    };
    for (status, told) in [
        ("${ 404 }", "No (status 404)."),
        ("${ 404.0 }", "No (status 404)."),
        ("${ null }", "No (status 500)."),
    ] {
        assert!(raised(status).ends_with(told), "{}", raised(status));
    }
    for status in [
        "${ 200 }",
        "${ 7 }",
        "${ 70000 }",
        "${ 404.5 }",
        "${ \"404\" }",
    ] {
        let told = raised(status);
        assert!(told.contains("from 400 to 599 (status 400)"), "{told}");
    }
}
