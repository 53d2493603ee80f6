//! `/v1/projects/{projectId}/access`.

use crate::harness::{App, made};

#[test]
fn without_an_authorization_server_there_is_no_access_list() {
    let app = App::start();
    let project = made::project(&app);
    app.get(&format!("/v1/projects/{project}/access"))
        .expect_error(501, "project-access-unsupported");
    app.get("/v1/projects/%2a/access")
        .expect_error(404, "not-found");
}
