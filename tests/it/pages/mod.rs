//! The pages for whoever builds agents: what they say of tools and of streams is what happens, and
//! their code runs as it stands. The quickstart, which begins with the program itself, is in `tests/cli`.

mod streaming;
mod tools;
