//! One page of a list.

#[cfg(doc)]
use tokenrail_domain::ListedAgent;
use tokenrail_domain::ListedTurn;

/// The maximum sizes of a page of a list, and of a field in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListBounds {
    /// The approximate size of a page. A page has at least one item if there is one.
    pub bytes: usize,
    /// Longer fields are cut: see [`ListedAgent`] and [`ListedTurn`].
    pub field_bytes: usize,
}

/// One page of the turns of an agent, or of all agents.
pub type TurnList = ListPage<ListedTurn>;

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// Whether there are more items after the last one.
    pub more: bool,
}

impl<T> ListPage<T> {
    /// Takes as many items as the limits allow, and checks whether there is one more.
    ///
    /// # Errors
    /// The first error in `items`.
    pub fn of<E>(
        items: impl IntoIterator<Item = Result<T, E>>,
        (limit, bytes): (usize, usize),
        size: impl Fn(&T) -> usize,
    ) -> Result<Self, E> {
        let (mut page, mut taken) = (Vec::new(), 0);
        for item in items {
            let item = item?;
            taken += size(&item);
            if limit <= page.len() || bytes < taken && !page.is_empty() {
                return Ok(Self { items: page, more: true });
            }
            page.push(item);
        }
        Ok(Self { items: page, more: false })
    }
}
