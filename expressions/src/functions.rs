//! The names that an expression may call, and those of jq that it may not.
//!
//! What is taken is a pure function of its arguments and always ends. So a name that reads a clock, the
//! environment or a file is refused, and so is one that could go on for ever.

macro_rules! functions {
    ($($variant:ident $name:literal $arity:literal,)*) => {
        /// A function that an expression may call: its name and how many arguments it takes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function { $($variant,)* }

        pub(crate) const FUNCTIONS: &[(&str, usize, Function)] = &[$(($name, $arity, Function::$variant),)*];
    };
}

functions! {
    Abs "abs" 0,
    Add "add" 0,
    All "all" 0,
    AllOf "all" 1,
    AllFrom "all" 2,
    Any "any" 0,
    AnyOf "any" 1,
    AnyFrom "any" 2,
    Arrays "arrays" 0,
    AsciiDowncase "ascii_downcase" 0,
    AsciiUpcase "ascii_upcase" 0,
    Booleans "booleans" 0,
    Capture "capture" 1,
    CaptureWith "capture" 2,
    Ceil "ceil" 0,
    Contains "contains" 1,
    Delete "del" 1,
    DeletePaths "delpaths" 1,
    Descend "recurse" 0,
    Empty "empty" 0,
    EndsWith "endswith" 1,
    Error "error" 0,
    ErrorWith "error" 1,
    Explode "explode" 0,
    First "first" 0,
    FirstOf "first" 1,
    Flatten "flatten" 0,
    FlattenBy "flatten" 1,
    Floor "floor" 0,
    FromEntries "from_entries" 0,
    FromJson "fromjson" 0,
    GetPath "getpath" 1,
    GroupBy "group_by" 1,
    Gsub "gsub" 2,
    GsubWith "gsub" 3,
    Has "has" 1,
    Implode "implode" 0,
    In "in" 1,
    Index "index" 1,
    Indices "indices" 1,
    Inside "inside" 1,
    IsEmpty "isempty" 1,
    Iterables "iterables" 0,
    Join "join" 1,
    Keys "keys" 0,
    KeysUnsorted "keys_unsorted" 0,
    Last "last" 0,
    LastOf "last" 1,
    LeftTrim "ltrim" 0,
    LeftTrimText "ltrimstr" 1,
    Length "length" 0,
    Limit "limit" 2,
    Map "map" 1,
    MapValues "map_values" 1,
    Match "match" 1,
    MatchWith "match" 2,
    Max "max" 0,
    MaxBy "max_by" 1,
    Min "min" 0,
    MinBy "min_by" 1,
    Not "not" 0,
    Nth "nth" 1,
    NthOf "nth" 2,
    Nulls "nulls" 0,
    Numbers "numbers" 0,
    Objects "objects" 0,
    PathOf "path" 1,
    Paths "paths" 0,
    Pick "pick" 1,
    Range "range" 1,
    RangeFrom "range" 2,
    RangeBy "range" 3,
    Reverse "reverse" 0,
    RightIndex "rindex" 1,
    RightTrim "rtrim" 0,
    RightTrimText "rtrimstr" 1,
    Round "round" 0,
    Scalars "scalars" 0,
    Scan "scan" 1,
    ScanWith "scan" 2,
    Select "select" 1,
    SetPath "setpath" 2,
    Sort "sort" 0,
    SortBy "sort_by" 1,
    Split "split" 1,
    SplitWith "split" 2,
    Sqrt "sqrt" 0,
    StartsWith "startswith" 1,
    Strings "strings" 0,
    Sub "sub" 2,
    SubWith "sub" 3,
    Test "test" 1,
    TestWith "test" 2,
    ToEntries "to_entries" 0,
    ToJson "tojson" 0,
    ToNumber "tonumber" 0,
    ToText "tostring" 0,
    Transpose "transpose" 0,
    Trim "trim" 0,
    Type "type" 0,
    Unique "unique" 0,
    UniqueBy "unique_by" 1,
    Utf8ByteLength "utf8bytelength" 0,
    Values "values" 0,
    Walk "walk" 1,
    WithEntries "with_entries" 1,
}

const CLOCK: &str = "An expression reads no clock and no time zone. Pass the time in as data.";
const SURROUNDINGS: &str = "An expression sees its input and its variables alone.";
const ENDLESS: &str =
    "An expression always ends. Use `range`, `map` or `..`, or repeat a task with `for`.";
const NUMBERS: &str = "JSON has neither NaN nor infinite numbers.";

/// Names of jq that are refused, and why.
const REFUSED: &[(&str, &str)] = &[
    ("now", CLOCK),
    ("localtime", CLOCK),
    ("gmtime", CLOCK),
    ("mktime", CLOCK),
    ("strftime", CLOCK),
    ("strflocaltime", CLOCK),
    ("strptime", CLOCK),
    ("todate", CLOCK),
    ("fromdate", CLOCK),
    ("date", CLOCK),
    ("dateadd", CLOCK),
    ("datesub", CLOCK),
    ("env", SURROUNDINGS),
    ("input", SURROUNDINGS),
    ("inputs", SURROUNDINGS),
    ("input_filename", SURROUNDINGS),
    ("input_line_number", SURROUNDINGS),
    ("get_search_list", SURROUNDINGS),
    ("debug", "An expression writes no log."),
    ("stderr", "An expression writes no log."),
    (
        "halt",
        "An expression ends nothing but itself. Use `error`.",
    ),
    (
        "halt_error",
        "An expression ends nothing but itself. Use `error`.",
    ),
    ("repeat", ENDLESS),
    ("while", ENDLESS),
    ("until", ENDLESS),
    (
        "recurse",
        "Only `recurse` without arguments, which is `..`, is taken.",
    ),
    ("recurse_down", "Use `..`."),
    ("infinite", NUMBERS),
    ("nan", NUMBERS),
    ("isnan", NUMBERS),
    ("isinfinite", NUMBERS),
    ("isnormal", NUMBERS),
    ("finites", NUMBERS),
    ("normals", NUMBERS),
];

/// Names of other languages, and what they are called here.
const FOREIGN: &[(&str, &str)] = &[
    ("size", "length"),
    ("len", "length"),
    ("count", "length"),
    ("filter", "select"),
    ("where", "select"),
    ("lower", "ascii_downcase"),
    ("toLowerCase", "ascii_downcase"),
    ("upper", "ascii_upcase"),
    ("toUpperCase", "ascii_upcase"),
    ("str", "tostring"),
    ("string", "tostring"),
    ("toString", "tostring"),
    ("int", "tonumber"),
    ("number", "tonumber"),
    ("parseInt", "tonumber"),
    ("parseFloat", "tonumber"),
    ("sum", "add"),
    ("concat", "add"),
    ("includes", "contains"),
    ("startsWith", "startswith"),
    ("endsWith", "endswith"),
    ("matches", "test"),
    ("replace", "sub"),
    ("distinct", "unique"),
    ("uniq", "unique"),
    ("True", "true"),
    ("False", "false"),
    ("None", "null"),
    ("nil", "null"),
    ("undefined", "null"),
    ("groupBy", "group_by"),
    ("sortBy", "sort_by"),
    ("entries", "to_entries"),
    ("typeof", "type"),
    ("parse", "fromjson"),
    ("stringify", "tojson"),
];

pub(crate) fn find(name: &str, arity: usize) -> Option<Function> {
    let mut known = FUNCTIONS.iter();
    known
        .find(|(other, takes, _)| *other == name && *takes == arity)
        .map(|(_, _, function)| *function)
}

/// Why a name of jq is refused.
pub(crate) fn refused(name: &str) -> Option<&'static str> {
    REFUSED
        .iter()
        .find(|(other, _)| *other == name)
        .map(|(_, why)| *why)
}

/// The numbers of arguments with which a name may be called.
pub(crate) fn arities(name: &str) -> Vec<usize> {
    let named = FUNCTIONS.iter().filter(|(other, _, _)| *other == name);
    named.map(|(_, arity, _)| *arity).collect()
}

/// What the author may have meant by an unknown name.
pub(crate) fn similar(name: &str) -> Option<&'static str> {
    if let Some((_, ours)) = FOREIGN.iter().find(|(other, _)| *other == name) {
        return Some(ours);
    }
    let near = FUNCTIONS
        .iter()
        .map(|(known, _, _)| (distance(name, known), *known));
    let (steps, known) = near.min()?;
    let is_near = steps <= 2 && steps * 2 < name.len();
    is_near.then_some(known)
}

/// How many letters differ between two short words.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(40).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(40).enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}
