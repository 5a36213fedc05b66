//! Studies as one HTML page that needs nothing outside itself.
//! ```text
//! what holds: every claim, with a link to its figures
//! each plan: what and why; claims; figures, each with its numbers; commands; machine, commit
//! ```
//! Invariant: every text that comes from a file is escaped.

use crate::experiment::chart::svg;
use crate::experiment::claim::Verdict;
use crate::experiment::figure::Figure;
use crate::experiment::number::duration;
use crate::experiment::study::Study;

const STYLE: &str = "\
body{font:16px/1.5 sans-serif;color:#222;background:#fff;max-width:1240px;margin:2em auto;padding:0 1.2em}\
h1{font-size:1.7em}h2{font-size:1.35em;margin-top:2.6em;border-top:1px solid #ccc;padding-top:1em}\
h3{font-size:1.05em;margin-bottom:.3em}\
svg{max-width:100%;height:auto}\
table{border-collapse:collapse;font-size:.9em;margin:.6em 0}\
th,td{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}\
th:first-child,td:first-child,.words td,.words th{text-align:left}\
code,pre{font:13px/1.45 monospace;background:#f4f4f4}pre{padding:.7em;overflow-x:auto}\
summary{cursor:pointer;color:#0072b2}\
.source,.note{color:#666;font-size:.92em}\
.yes{color:#00694c;font-weight:bold}.no{color:#b34700;font-weight:bold}.unknown{color:#777;font-weight:bold}\
.missing{padding:1em;border:1px dashed #999;color:#666}";

/// The page. `about` stands under its title: what it shows, and the command that made it.
pub fn html(title: &str, about: &str, studies: &[Study]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n<p>{1}</p>\n",
        escaped(title),
        escaped(about),
    );
    page.push_str(&overview(studies));
    studies.iter().for_each(|study| page.push_str(&chapter(study)));
    page.push_str("</body>\n</html>\n");
    page
}

/// Every claim in one table.
fn overview(studies: &[Study]) -> String {
    let mut rows = String::new();
    for study in studies {
        let (name, title) = (escaped(&study.experiment.name), escaped(&study.experiment.title));
        for (claim, outcome) in study.claims() {
            rows.push_str(&format!(
                "<tr><td><a href=\"#{name}\">{title}</a></td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                escaped(&claim.says),
                verdict(outcome.verdict),
                escaped(&outcome.told()),
            ));
        }
    }
    format!(
        "<h2>What is claimed, and whether it holds here</h2>\n<table class=\"words\">\n\
         <tr><th>plan</th><th>claim</th><th></th><th>found</th></tr>\n{rows}</table>\n"
    )
}

fn verdict(verdict: Verdict) -> String {
    let class = match verdict {
        Verdict::Holds => "yes",
        Verdict::DoesNotHold => "no",
        Verdict::Tie | Verdict::NotMeasured => "unknown",
    };
    format!("<span class=\"{class}\">{}</span>", verdict.words())
}

fn chapter(study: &Study) -> String {
    let plan = &study.experiment;
    let mut text = format!(
        "<h2 id=\"{}\">{}</h2>\n<p class=\"source\">{}</p>\n<p>{}</p>\n",
        escaped(&plan.name),
        escaped(&plan.title),
        escaped(&plan.source),
        escaped(plan.about.trim()).replace("\n\n", "</p>\n<p>"),
    );
    text.push_str(&claims(study));
    study.figures().iter().for_each(|figure| text.push_str(&figure_text(figure)));
    text.push_str(&origin(study));
    text
}

fn claims(study: &Study) -> String {
    let claims = study.claims();
    if claims.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<table class=\"words\">\n<tr><th>claim</th><th>by</th><th></th><th>found</th></tr>\n",
    );
    for (claim, outcome) in claims {
        let outside = outcome.outside();
        let outside = match outside.iter().any(|label| !label.is_empty()) {
            true => {
                format!("<br><span class=\"note\">outside: {}</span>", escaped(&outside.join("; ")))
            }
            false => String::new(),
        };
        let why = match outcome.why.as_str() {
            "" => String::new(),
            why => format!("<br><span class=\"note\">{}</span>", escaped(why)),
        };
        text.push_str(&format!(
            "<tr><td>{}{why}</td><td>{}</td><td>{}</td><td>{}{outside}</td></tr>\n",
            escaped(&claim.says),
            escaped(&claim.source),
            verdict(outcome.verdict),
            escaped(&outcome.told()),
        ));
    }
    text + "</table>\n"
}

fn figure_text(figure: &Figure) -> String {
    let title = escaped(&figure.title);
    let Some(picture) = svg(figure) else {
        return format!(
            "<h3>{title}</h3>\n<p class=\"missing\">There are no measurements for this figure.</p>\n"
        );
    };
    let mut text =
        format!("<figure>\n<h3>{title}</h3>\n{picture}\n<details><summary>numbers</summary>\n");
    for panel in &figure.panels {
        text.push_str(&format!(
            "<p class=\"note\">{}: {}</p>\n<table>\n",
            escaped(&figure.y_label),
            escaped(&panel.title)
        ));
        for (place, row) in figure.table(panel).iter().enumerate() {
            let cell = if place == 0 { "th" } else { "td" };
            let cells: String =
                row.iter().map(|text| format!("<{cell}>{}</{cell}>", escaped(text))).collect();
            text.push_str(&format!("<tr>{cells}</tr>\n"));
        }
        text.push_str("</table>\n");
    }
    text.push_str("</details>\n");
    if figure.has_zeros_at_the_edge() {
        text.push_str("<p class=\"note\">Points on the lower edge are zero.</p>\n");
    }
    text + "</figure>\n"
}

/// Where the numbers come from.
fn origin(study: &Study) -> String {
    let (measured, all) = study.measured();
    let machine = study.machine().map_or(String::new(), |machine| {
        let gib = machine.memory_bytes as f64 / (1u64 << 30) as f64;
        format!(
            "; {}, {} cores, {gib:.0} GiB, {}",
            machine.processor, machine.cores, machine.system
        )
    });
    let told = format!(
        "{measured} of {all} measurements, {}, at scale {}; commit {}{machine}",
        duration(study.seconds()),
        study.scale,
        study.commits().join(", "),
    );
    let commands: String = study
        .steps
        .iter()
        .map(|(step, record)| {
            let note = if record.is_some() { "" } else { "    # not measured" };
            format!("{}{note}\n", step.command())
        })
        .collect();
    format!(
        "<p class=\"note\">{}</p>\n<details><summary>commands</summary>\n<pre>{}</pre>\n</details>\n",
        escaped(&told),
        escaped(&commands),
    )
}

/// Text that means itself in HTML.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            letter => safe.push(letter),
        }
    }
    safe
}
