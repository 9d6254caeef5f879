//! What the running server has saved again after failovers of the database. Only the server knows it: the database does
//! not say what it has lost.

use super::{DoctorCheck, Verdict, finding};
use crate::cli::client::Client;
use crate::cli::screen::counted;

/// What the metrics of a server say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    failovers: u64,
    repeated: u64,
    lost: u64,
}

impl Counts {
    /// `None` if a server of another version has no such metrics.
    fn of(metrics: &str) -> Option<Self> {
        let count = |name: &str| {
            let mut lines = metrics.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(metric, _)| *metric == name)?.1.parse().ok()
        };
        Some(Self {
            failovers: count("tokenrail_database_failovers_total")?,
            repeated: count("tokenrail_changes_repeated_total")?,
            lost: count("tokenrail_changes_lost_total")?,
        })
    }
}

pub(super) async fn seen_by(client: &Client) -> Option<DoctorCheck> {
    let metrics = client.get(&["metrics"], &[]).await.ok()?.text().await.ok()?;
    Counts::of(&metrics).map(told)
}

fn told(Counts { failovers, repeated, lost }: Counts) -> DoctorCheck {
    let name = "database failovers";
    if failovers == 0 && repeated == 0 && lost == 0 {
        return finding(name, Verdict::Good, "none since the server started");
    }
    let lacked = match repeated {
        0 => "no saved change was missing afterwards".to_owned(),
        _ => format!("missing afterwards, and saved again: {}", counted(repeated, "change")),
    };
    let text = format!("{failovers} since the server started; {lacked}");
    if lost == 0 {
        return finding(name, Verdict::Good, text);
    }
    let text = format!(
        "{text}; {} could not be saved again: the server log says why; use a synchronous standby",
        counted(lost, "other change")
    );
    finding(name, Verdict::Warning, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(failovers: u64, repeated: u64, lost: u64) -> (Verdict, String) {
        let metrics = format!(
            "# TYPE tokenrail_changes_lost counter\ntokenrail_changes_lost_total {lost}\n\
             tokenrail_changes_repeated_total {repeated}\ntokenrail_database_failovers_total {failovers}\n# EOF\n"
        );
        let DoctorCheck { verdict, text, .. } = told(Counts::of(&metrics).unwrap());
        (verdict, text)
    }

    #[test]
    fn lost_changes_are_a_warning() {
        assert_eq!(said(0, 0, 0), (Verdict::Good, "none since the server started".to_owned()));
        let (verdict, text) = said(1, 20, 0);
        assert!(
            verdict == Verdict::Good && text.contains("missing afterwards, and saved again: 20 changes"),
            "{text}"
        );
        let (_, text) = said(1, 1, 1);
        assert!(
            text.contains("missing afterwards, and saved again: 1 change")
                && text.contains("1 other change could"),
            "{text}"
        );
        let (verdict, text) = said(2, 20, 3);
        assert!(
            verdict == Verdict::Warning && text.contains("3 other changes could not be saved again"),
            "{text}"
        );
    }

    #[test]
    fn a_server_without_these_metrics_is_left_out() {
        assert_eq!(Counts::of("tokenrail_changes_lost_total 3\n"), None);
    }
}
