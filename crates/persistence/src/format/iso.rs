//! Times as people read them: ISO 8601, UTC, with milliseconds.

use tokenrail_domain::Timestamp;

const DAY_MS: i64 = 86_400_000;

/// For example `2026-11-21T22:38:11.042Z`. A year outside 0 to 9999 gets a sign and six digits.
pub(crate) fn format(at: Timestamp) -> String {
    let (days, ms) = (at.0.div_euclid(DAY_MS), at.0.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    let time = format!("{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000);
    if (0..=9999).contains(&year) { format!("{year:04}-{time}") } else { format!("{year:+07}-{time}") }
}

/// The inverse of [`format`].
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (year_month, day) = date.rsplit_once('-')?;
    let (year, month) = year_month.rsplit_once('-')?;
    let mut parts = time.split([':', '.']).map(|part| part.parse::<i64>().ok());
    let (hour, minute, second, ms) = (parts.next()??, parts.next()??, parts.next()??, parts.next()??);
    let days = days_from_civil(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
    let ms = ((hour * 60 + minute) * 60 + second).checked_mul(1000)?.checked_add(ms)?;
    // In this order, so that the smallest possible time does not overflow in between.
    days.checked_add(1)?.checked_mul(DAY_MS)?.checked_add(ms - DAY_MS).map(Timestamp)
}

/// Years begin in March, so that the leap day is their last day. The calendar repeats after an era of 400 years.
fn civil(days: i64) -> (i64, i64, i64) {
    // From 1970-01-01 to 0000-03-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let year = year.checked_sub(i64::from(month <= 2))?;
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = if 2 < month { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era.checked_mul(146_097)?.checked_add(day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (1_795_299_000_000, "2026-11-21T22:10:00.000Z"),
            (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(format(Timestamp(ms)), text);
        }
        for wrong in ["", "2026-11-21", "2026-11-21T22:38:11Z", "x-11-21T22:38:11.000Z"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_time_comes_back(ms in prop_oneof![any::<i64>(), -5_000_000_000_000_i64..5_000_000_000_000]) {
            prop_assert_eq!(parse(&format(Timestamp(ms))), Some(Timestamp(ms)));
        }
    }
}
