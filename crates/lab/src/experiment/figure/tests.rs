//! Tests of the points of curves and of their order.

use super::*;

fn row(fields: &[(&str, f64)]) -> Row {
    let fields = fields.iter().map(|(name, value)| (name.to_string(), Scalar::Number(*value)));
    Row(fields.collect())
}

fn points(order: &str, rows: &[Row]) -> Vec<(f64, f64)> {
    let plan = format!(
        "title = \"t\"\nx = \"rate\"\nx_label = \"x\"\ny = \"time\"\ny_label = \"y\"\n{order}"
    );
    let plan: FigurePlan = toml::from_str(&plan).expect("a figure");
    let figure = plan.figure(rows);
    figure
        .panels
        .into_iter()
        .flat_map(|panel| panel.curves)
        .flat_map(|curve| curve.points)
        .collect()
}

#[test] // With more clients there may be less throughput: the curve then turns back.
fn a_throughput_latency_curve_is_joined_by_clients() {
    let measured = |clients: f64, rate: f64, time: f64| {
        row(&[("clients", clients), ("rate", rate), ("time", time)])
    };
    let rows = [
        measured(4.0, 150.0, 30.0),
        measured(1.0, 100.0, 10.0),
        measured(8.0, 120.0, 70.0),
        measured(2.0, 160.0, 15.0),
        measured(8.0, 110.0, 60.0),
        measured(8.0, 130.0, 80.0),
    ];
    let by_clients = [(100.0, 10.0), (160.0, 15.0), (150.0, 30.0), (120.0, 70.0)];
    assert_eq!(points("order = \"clients\"", &rows), by_clients);
    let by_x = points("", &rows);
    assert!(by_x.len() == 6 && by_x.is_sorted_by(|one, next| one.0 < next.0), "{by_x:?}");
    let unordered = row(&[("rate", 1.0), ("time", 1.0)]);
    assert_eq!(points("order = \"clients\"", &[unordered]), []);
}

#[test]
fn a_law_is_told_of_each_curve_that_has_one_if_it_is_asked_for() {
    let plan = |more: &str| -> FigurePlan {
        let plan = format!(
            "title = \"t\"\nx = \"keys\"\nx_label = \"keys\"\ny_label = \"y\"\n{more}\n\
             [y]\nmiss = \"miss\"\nhit = \"hit\""
        );
        toml::from_str(&plan).expect("a figure")
    };
    let rows: Vec<Row> = [1e6, 1e7, 1e8]
        .map(|keys: f64| row(&[("keys", keys), ("miss", 2.0), ("hit", keys.sqrt())]))
        .to_vec();
    let laws = plan("law = true\nseries = [\"measure\"]").figure(&rows).laws;
    let described: Vec<String> = laws.iter().map(|law| law.describe("keys")).collect();
    let [miss, hit] = ["miss: 2 × (keys / 1M)^0.00", "hit: 1000 × (keys / 1M)^0.50"];
    assert_eq!(described, [miss, hit].map(|law| format!("{law}, within 0 %")));
    assert!(plan("").figure(&rows).laws.is_empty());
    assert!(plan("law = true\nmark = \"bars\"").check().is_err());
}
