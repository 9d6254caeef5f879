//! The requested page of a list.

use crate::api::Api;
use crate::error::Problem;
use crate::query::Query;

/// The requested page of a list. `after` and `before` refer to the order of the list.
#[derive(Debug, Clone)]
pub(super) struct Range {
    pub(super) after: Option<String>,
    pub(super) before: Option<String>,
    pub(super) limit: usize,
    /// Oldest first.
    pub(super) ascending: bool,
}

impl Range {
    pub(super) fn of(query: &Query, api: &Api) -> Result<Self, Problem> {
        let max = api.config().list_agents;
        let ascending = match query.get("order") {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return Err(Problem::parameter("order", "must be asc or desc")),
        };
        Ok(Self {
            after: query.get("after").map(str::to_owned),
            before: query.get("before").map(str::to_owned),
            limit: query.page_items(max)?,
            ascending,
        })
    }

    /// Cuts the page out of a list. Items with the same id stay together.
    pub(super) fn cut<T>(&self, mut items: Vec<T>, id: impl Fn(&T) -> String) -> Vec<T> {
        if let Some(after) = &self.after
            && let Some(last) = items.iter().rposition(|item| id(item) == *after)
        {
            items.drain(..=last);
        }
        if let Some(before) = &self.before {
            if let Some(first) = items.iter().position(|item| id(item) == *before) {
                items.truncate(first);
            }
            let mut begin = items.len().saturating_sub(self.limit);
            while 0 < begin && items.len() > begin && id(&items[begin - 1]) == id(&items[begin]) {
                begin -= 1;
            }
            items.drain(..begin);
            return items;
        }
        let mut end = self.limit.min(items.len());
        while 0 < end && end < items.len() && id(&items[end - 1]) == id(&items[end]) {
            end += 1;
        }
        items.truncate(end);
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(after: &str, before: &str, limit: usize) -> String {
        let cursor = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let range = Range { after: cursor(after), before: cursor(before), limit, ascending: true };
        range.cut("abccd".chars().collect(), char::to_string).into_iter().collect()
    }

    #[test]
    fn a_page_begins_behind_its_cursor_and_keeps_together_what_has_one_id() {
        assert_eq!(cut("", "", 2), "ab");
        assert_eq!(cut("", "", 3), "abcc");
        assert_eq!(cut("b", "", 1), "cc");
        assert_eq!(cut("c", "", 9), "d");
        assert_eq!(cut("d", "", 9), "");
        assert_eq!(cut("", "d", 1), "cc");
        assert_eq!(cut("", "c", 1), "b");
        assert_eq!(cut("a", "d", 9), "bcc");
        assert_eq!(cut("x", "y", 9), "abccd", "a cursor that is not in the list is none");
    }
}
