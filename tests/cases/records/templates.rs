//! `consume -F`: every letter and modifier, and nothing that is none.

use super::{of_json, templated};
use crate::sandbox::{Expect, Sandbox, status, tree};

/// One record with everything and one with nothing, appended at 10:00 in 2026.
fn two() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut produce = sandbox.at("2026-01-01T10:00:00.005Z", "produce -J");
    let lines = concat!(
        r#"{"key":"ké","payload":"v\n\"1\"","headers":["a","1","b",null,"a",""],"ts":1709210096789}"#,
        "\n",
        r#"{"payload":null}"#,
        "\n",
    );
    produce.write_stdin(lines).prints("");
    sandbox
}

#[test]
fn every_letter_stands_for_its_part() {
    let sandbox = two();
    for (template, want) in [
        ("%o;", "0;1;"),
        ("%k;", "ké;;"),
        ("%K;", "3;-1;"),
        ("%v;", "v\n\"1\";;"),
        ("%s;", "v\n\"1\";;"),
        ("%V;", "5;-1;"),
        ("%S;", "5;-1;"),
        ("%h;", "a=1,b=NULL,a=;;"),
        ("%T;", "1709210096789;1767261600005;"),
        ("%d;", "2024-02-29T12:34:56.789Z;2026-01-01T10:00:00.005Z;"),
        ("%o%o%%%k\\n", "00%ké\n11%\n"),
        ("é%oé", "é0éé1é"),
    ] {
        let got = String::from_utf8(templated(&sandbox, template)).unwrap();
        assert_eq!(got, want, "-F {template}");
    }
}

#[test]
fn every_modifier_gives_its_form() {
    let sandbox = two();
    for (template, want) in [
        ("%k{hex};", "6bc3a9;;"),
        ("%v{hex};", "760a223122;;"),
        ("%s{hex};", "760a223122;;"),
        ("%k{base64};", "a8Op;;"),
        ("%v{base64};", "dgoiMSI=;;"),
        ("%k{json};", "\"ké\";null;"),
        ("%v{json};", "\"v\\n\\\"1\\\"\";null;"),
        ("%h{json};", "[\"a\",\"1\",\"b\",null,\"a\",\"\"];[];"),
        ("%d{%Y-%m-%d};", "2024-02-29;2026-01-01;"),
        ("%d{%H:%M:%S %Z};", "12:34:56 UTC;10:00:00 UTC;"),
        ("%d{%s};", "1709210096;1767261600;"),
        ("%d{at};", "at;at;"),
        ("%v{hex}{hex};", "760a223122{hex};{hex};"),
        (
            "{\"k\":%k{json},\"v\":%v{json}}\\n",
            "{\"k\":\"ké\",\"v\":\"v\\n\\\"1\\\"\"}\n{\"k\":null,\"v\":null}\n",
        ),
    ] {
        let got = String::from_utf8(templated(&sandbox, template)).unwrap();
        assert_eq!(got, want, "-F {template}");
    }
}

#[test]
fn bytes_that_are_no_text_lose_nothing_but_as_json() {
    let sandbox = of_json(
        "{\"key_base64\":\"/wA=\",\"payload_base64\":\"gP4K\",\"headers_base64\":[\"eA==\",\"/w==\"]}\n",
    );
    assert_eq!(templated(&sandbox, "%k|%v|%h"), b"\xff\0|\x80\xfe\n|x=\xff");
    assert_eq!(templated(&sandbox, "%k{hex}|%v{base64}|%K|%V"), b"ff00|gP4K|2|3");
    let json = templated(&sandbox, "[%k{json},%v{json},%h{json}]");
    let read: serde_json::Value = serde_json::from_slice(&json).expect("JSON stays JSON");
    assert_eq!(read.as_array().unwrap().len(), 3);
}

#[test]
fn times_at_the_ends_of_what_fits_do_no_harm() {
    let sandbox = of_json(
        "{\"ts\":-9223372036854775808,\"payload\":\"a\"}\n{\"ts\":9223372036854775807,\"payload\":\"b\"}\n{\"ts\":-1,\"payload\":\"c\"}\n",
    );
    assert_eq!(templated(&sandbox, "%T "), b"-9223372036854775808 9223372036854775807 -1 ");
    let dates = String::from_utf8(templated(&sandbox, "%d %d{%Y}\\n")).unwrap();
    assert_eq!(dates.lines().count(), 3);
    assert!(dates.ends_with("1969-12-31T23:59:59.999Z 1969\n"), "{dates}");
}

#[test]
fn a_template_that_is_none_is_refused_with_its_place_and_nothing_is_printed() {
    let sandbox = two();
    sandbox.commit("g", 0);
    let before = tree(sandbox.log());
    for (template, marked) in [
        ("%o:%q", "%q"),
        ("%x", "%x"),
        ("%", "%"),
        ("100%", "%"),
        ("% o", "% "),
        ("%é", "%é"),
        ("%k{upper}", "upper"),
        ("%k{}", "{}"),
        ("%v{HEX}", "HEX"),
        ("%v{hex", "hex"),
        ("%v{ hex}", "hex"),
        ("%o{hex}", "%o"),
        ("%T{%Y}", "%T"),
        ("%K{json}", "%K"),
        ("%d{%}", "%d"),
        ("%d{%Y", "%d"),
        ("%d{%!}", "%d"),
        ("%{hex}v", "%{"),
        ("\\q", "\\q"),
        ("%v\\", "\\"),
        ("%p", "%p"),
        ("%t", "%t"),
    ] {
        for group in [&[][..], &["-g", "g"], &["-g", "new"]] {
            let outcome = sandbox.tapelog("consume -F").arg(template).args(group).outcome();
            let outcome = outcome.ended(status::USAGE).said(&["--format", marked]).printed("");
            assert!(outcome.stderr.contains("character"), "the place is marked: {outcome}");
        }
    }
    assert!(tree(sandbox.log()) == before, "nothing changed, no group came");
}

#[test]
fn a_template_and_a_delimiter_are_one_too_many() {
    let sandbox = two();
    for beside in ["-0", "-D ;", "-J", "-K :", "--json-payload"] {
        sandbox
            .tapelog(&format!("consume -F %v {beside}"))
            .outcome()
            .ended(status::USAGE)
            .printed("");
    }
}
