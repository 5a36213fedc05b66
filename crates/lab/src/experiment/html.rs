//! Studies as one self-contained HTML page.
//! ```text
//! how many claims hold, and every claim, with a link to its figures
//! each plan: what and why; claims; figures, each with its numbers; commands; machine, commit
//! ```
//! Invariants: every text that comes from a file is escaped. Colours are those of the palette. In a
//! narrow window, tables of numbers scroll by themselves and the page does not.

use crate::experiment::chart::{escaped, style, svg};
use crate::experiment::claim::Verdict;
use crate::experiment::figure::{Figure, Panel};
use crate::experiment::number::duration;
use crate::experiment::palette;
use crate::experiment::study::{Study, summary};

/// In a narrow window, a claim is a paragraph instead of a row.
const STYLE: &str = "\
*{box-sizing:border-box}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1420px;margin:1.5em auto;padding:0 24px}\
p,h1,h2,h3{max-width:46em}\
h1{font-size:1.7em;margin:0 0 .3em}.sum{font-size:1.25em;font-weight:bold;margin:.2em 0}\
h2{font-size:1.35em;margin:.9em 0 .2em}h2+.source{margin-top:0}\
section{border-top:1px solid var(--grid);margin-top:2.2em}\
a,summary{color:var(--link)}summary{cursor:pointer}\
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,600px),1fr));gap:8px 32px;margin:1em 0}\
figure{margin:0;min-width:0}h3{font-size:1em;margin:.6em 0 0}\
svg{display:block;max-width:100%;height:auto}\
.scroll{overflow-x:auto}\
caption{text-align:left}table{border-collapse:collapse;font-size:.92em;margin:.5em 0}\
th,td{padding:.28em .8em .28em 0;border-bottom:1px solid var(--grid);text-align:right;vertical-align:top;font-variant-numeric:tabular-nums}\
th:first-child,td:first-child,.words td,.words th{text-align:left}\
.words{width:100%}.words td:first-child{width:52%}.words th[colspan]{padding-top:1em}\
.count{font-weight:normal;color:var(--quiet)}\
code{font-size:.92em;background:var(--field)}pre{font:13px/1.45 monospace;background:var(--field);padding:.7em;overflow-x:auto}\
.source,.note{color:var(--quiet);font-size:.92em}\
.yes,.no,.unknown{font-weight:bold;white-space:nowrap}\
.yes{color:var(--good)}.no{color:var(--bad)}.unknown{color:var(--quiet)}\
.missing{padding:.8em;border:1px dashed var(--axis);color:var(--quiet)}\
@media(max-width:700px){body{padding:0 10px;margin:.6em auto}\
.words tr,.words td{display:block}.words td,.words td:first-child{border:0;padding:0;width:auto}\
.words tr{padding:.5em 0;border-bottom:1px solid var(--grid)}.words .head{display:none}.words th{border:0}}\
";

/// Returns the page. `about` stands below the title: what the page shows, and the command that made
/// it.
pub fn html(title: &str, about: &str, studies: &[Study]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n\
         <style>{1}{STYLE}{2}</style>\n</head>\n<body>\n<h1>{0}</h1>\n\
         <p class=\"sum\">{3}</p>\n<p>{4}</p>\n",
        escaped(title),
        palette::variables(),
        style(),
        escaped(&summary(studies)),
        escaped(about),
    );
    page.push_str(&overview(studies));
    studies.iter().for_each(|study| page.push_str(&chapter(study)));
    page.push_str("</body>\n</html>\n");
    page
}

/// Lists all claims in one table; each plan repeats its own below.
fn overview(studies: &[Study]) -> String {
    let mut rows = String::new();
    for study in studies {
        let claims = study.claims();
        if claims.is_empty() {
            continue;
        }
        let (name, title) = (escaped(&study.experiment.name), escaped(&study.experiment.title));
        let (holds, all) = (study.count(Verdict::Holds), claims.len());
        rows.push_str(&format!(
            "<tr><th colspan=\"3\"><a href=\"#{name}\">{title}</a> \
             <span class=\"count\">{holds} of {all}</span></th></tr>\n"
        ));
        for (claim, outcome) in claims {
            rows.push_str(&format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                escaped(&claim.says),
                verdict(outcome.verdict),
                escaped(&outcome.describe()),
            ));
        }
    }
    let head = "<tr class=\"head\"><th>claim</th><th></th><th>found</th></tr>";
    format!(
        "<section><h2>What is claimed, and whether it holds here</h2>\n\
         <table class=\"words\">\n{head}\n{rows}</table></section>\n"
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
        "<section><h2 id=\"{}\">{}</h2>\n<p class=\"source\">{}</p>\n<p>{}</p>\n",
        escaped(&plan.name),
        escaped(&plan.title),
        escaped(&plan.source),
        with_code(&escaped(plan.about.trim())).replace("\n\n", "</p>\n<p>"),
    );
    text.push_str(&claims(study));
    text.push_str("<div class=\"figures\">\n");
    study.figures().iter().for_each(|figure| text.push_str(&figure_text(figure)));
    text.push_str("</div>\n");
    text.push_str(&origin(study));
    text + "</section>\n"
}

fn claims(study: &Study) -> String {
    let claims = study.claims();
    if claims.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<table class=\"words\">\n\
         <tr class=\"head\"><th>claim</th><th>by</th><th></th><th>found</th></tr>\n",
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
            "<tr><td>{}{why}</td><td class=\"note\">{}</td><td>{}</td><td>{}{outside}</td></tr>\n",
            escaped(&claim.says),
            escaped(&claim.source),
            verdict(outcome.verdict),
            escaped(&outcome.describe()),
        ));
    }
    text + "</table>\n"
}

fn figure_text(figure: &Figure) -> String {
    let title = escaped(&figure.title);
    let Some(picture) = svg(figure) else {
        return format!(
            "<figure><h3>{title}</h3>\n\
             <p class=\"missing\">There are no measurements for this figure.</p></figure>\n"
        );
    };
    let mut text =
        format!("<figure>\n<h3>{title}</h3>\n{picture}\n<details><summary>numbers</summary>\n");
    for law in &figure.laws {
        text.push_str(&format!(
            "<p class=\"note\">{}</p>\n",
            escaped(&law.describe(&figure.x_label))
        ));
    }
    for panel in &figure.panels {
        text.push_str(&format!(
            "<div class=\"scroll\"><table>\n<caption class=\"note\">{}</caption>\n",
            escaped(&table_name(figure, panel)),
        ));
        for (place, row) in figure.table(panel).iter().enumerate() {
            let cell = if place == 0 { "th" } else { "td" };
            let cells: String =
                row.iter().map(|text| format!("<{cell}>{}</{cell}>", escaped(text))).collect();
            text.push_str(&format!("<tr>{cells}</tr>\n"));
        }
        text.push_str("</table></div>\n");
    }
    text.push_str("</details>\n");
    text + "</figure>\n"
}

/// Formats text in backticks as code.
fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let formatted = parts.map(|(place, part)| match place % 2 {
        0 => part.to_string(),
        _ => format!("<code>{part}</code>"),
    });
    formatted.collect()
}

/// Returns the caption of a table, with the panel's title if there are several panels.
fn table_name(figure: &Figure, panel: &Panel) -> String {
    let words = [figure.y_label.as_str(), panel.title.as_str()];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(": ")
}

/// Describes where the numbers come from.
fn origin(study: &Study) -> String {
    let (measured, all) = study.measured();
    let machine = study.machine().map_or(String::new(), |machine| {
        let gib = machine.memory_bytes as f64 / (1u64 << 30) as f64;
        format!(
            "; {}, {} cores, {gib:.0} GiB, {}",
            machine.processor, machine.cores, machine.system
        )
    });
    let summary = format!(
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
        escaped(&summary),
        escaped(&commands),
    )
}
