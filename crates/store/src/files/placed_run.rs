//! A run with its position in the tree.
//! ```text
//! level 1   id 7   [f5 f4 f3      ]       the id is the run's as long as it is in the tree
//! ```
//! Invariant: the span is that of the run.

use trommel_filters::Span;

use crate::entries::key_bounds::KeyBounds;
use crate::error::Result;
use crate::files::run::Run;
use crate::sync::Arc;

/// A run with its id and its level.
#[derive(Clone)]
pub(crate) struct PlacedRun {
    pub(crate) id: u64,
    pub(crate) level: usize,
    /// A copy of the run's span, because most queries look at nothing else of most runs.
    span: Span,
    pub(crate) run: Arc<Run>,
}

impl PlacedRun {
    pub(crate) fn new(id: u64, level: usize, run: Run) -> Self {
        PlacedRun { id, level, span: run.span(), run: Arc::new(run) }
    }

    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// Clips the run to a range. `None`: it has nothing there.
    pub(crate) fn within(&self, range: &KeyBounds) -> Result<Option<PlacedRun>> {
        let clipped = self.run.clip(range)?;
        Ok(clipped.map(|run| PlacedRun { span: run.span(), run, ..*self }))
    }
}
