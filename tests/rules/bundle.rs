//! The file that the build makes of the console's first modules (`build/bundle.rs`), from small ones, and what it refuses.
//! The browser's tests run the whole.

#[path = "../../build/bundle.rs"]
mod writer;

use std::collections::BTreeMap;

const RUNS: (&str, &str) = (
    "assets/pages/runs.js",
    "import { h } from \"../ui.js\";\nexport default function Runs() {\nreturn h(\"runs\");\n}\n",
);
const UI: (&str, &str) = (
    "assets/ui.js",
    "import { createElement as h } from \"preact\";\nexport { h };\nexport const tags = {};\n",
);
const APP: (&str, &str) = (
    "assets/app.js",
    "import { h,\ntags } from \"./ui.js\";\nimport \"./theme.js\";\n\
     const load = [() => import(\"./pages/runs.js\"), () => import(\"./pages/keys.js\"), () => import(\"marked\")];\n",
);
const THEME: (&str, &str) = ("assets/theme.js", "document.title = \"\";\n");
const KEYS: (&str, &str) = (
    "assets/pages/keys.js",
    "import { h as make, tags } from \"../ui.js\";\nimport \"../theme.js\";\nimport { lines } from \"diff\";\n\
     export { h } from \"../ui.js\";\nexport const load = () => import(\"./runs.js\");\n",
);
const OTHER: (&str, &str) = (
    "assets/pages/other.js",
    "import { load } from \"./keys.js\";\n",
);

fn made(modules: &[(&str, &str)]) -> Result<BTreeMap<String, String>, String> {
    let mut modules = modules
        .iter()
        .map(|(path, source)| ((*path).to_owned(), (*source).to_owned()))
        .collect();
    writer::bundle(&mut modules).map(|()| modules)
}

#[test]
fn each_module_is_in_the_file_once_after_what_it_imports() {
    let made = made(&[RUNS, UI, APP, THEME, KEYS, OTHER]).unwrap();
    let expected = "import * as $e0 from \"preact\";
export const $m = [];
{
const { createElement: h } = $e0;
const tags = {};
$m[0] = { h, tags };
}
{
const { h } = $m[0];
function Runs() {
return h(\"runs\");
}
$m[1] = { default: Runs };
}
{
document.title = \"\";
$m[2] = {  };
}
{
const { h, tags } = $m[0];
const load = [() => Promise.resolve($m[1]), () => import(\"/console/assets/pages/keys.js\"), () => import(\"marked\")];
$m[3] = {  };
}
";
    assert_eq!(made["assets/app.js"], expected);
    // What is loaded later takes from the file what is in it.
    let keys = "import { $m } from \"/console/assets/app.js\";
const { h: make, tags } = $m[0];

import { lines } from \"diff\";
export const { h } = $m[0];
export const load = () => Promise.resolve($m[1]);
";
    assert_eq!(made["assets/pages/keys.js"], keys);
    assert_eq!(made["assets/pages/other.js"], OTHER.1);
    assert_eq!(made.len(), 3, "{:?}", made.keys());
}

#[test]
fn what_it_does_not_know_ends_the_build() {
    for (source, told) in [
        ("import * as all from \"./ui.js\";", "no form"),
        ("import all from \"./ui.js\";", "no form"),
        ("export let count = 0;", "no form"),
        ("export default () => {};", "no form"),
        ("export * from \"./ui.js\";", "no form"),
        ("export const { a } = b;", "no form"),
        ("import { h } from \"./ui.js\"", "no end"),
        (
            "import { h } from \"./none.js\";",
            "no module assets/none.js",
        ),
        ("import \"./theme.js\";", "imports itself"),
    ] {
        let theme = (THEME.0, source);
        let fault = made(&[RUNS, UI, APP, theme]).unwrap_err();
        assert!(fault.contains(told), "{source}: {fault}");
    }
}
