//! A document as code blocks, each with the mark in front of it.

/// How a block is tested. The mark is a comment on the line before the block: `<!-- not run: why -->`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// No mark: the language decides.
    Usual,
    /// `not run: REASON`.
    NotRun(String),
    /// `file: NAME`: the block is written to this file, for the commands that follow.
    File(String),
    /// `tested in: PATH`: another test reads the block from this document.
    TestedIn(String),
    /// `excerpt: PATH`: each line of the block is in that source file.
    Excerpt(String),
    Unknown(String),
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) line: usize,
    pub(super) language: String,
    pub(super) text: String,
    pub(super) mark: Mark,
    pub(super) is_closed: bool,
}

#[derive(Debug)]
pub(super) struct Page {
    /// Its path in the repository.
    pub(super) name: String,
    pub(super) blocks: Vec<Block>,
    /// `<!-- needs: curl node -->`: the programs that the page's commands use.
    pub(super) needs: Vec<String>,
    /// `<!-- needs a server -->`: the commands run while a server runs.
    pub(super) needs_server: bool,
    /// Lines of code that is indented instead of fenced.
    pub(super) indented: Vec<usize>,
}

impl Page {
    pub(super) fn read(name: &str, text: &str) -> Self {
        let mut page = Self {
            name: name.to_owned(),
            blocks: Vec::new(),
            needs: Vec::new(),
            needs_server: false,
            indented: Vec::new(),
        };
        let mut lines = text.lines().enumerate().peekable();
        let (mut before, mut in_list) = ("", false);
        while let Some((index, line)) = lines.next() {
            let trimmed = line.trim_start();
            if let Some(language) = trimmed.strip_prefix("```") {
                let indent = line.len() - trimmed.len();
                let mut block = Block {
                    line: index + 1,
                    language: language.trim().to_owned(),
                    text: String::new(),
                    mark: comment(before).map_or(Mark::Usual, Mark::read),
                    is_closed: false,
                };
                for (_, line) in lines.by_ref() {
                    if line.trim() == "```" {
                        block.is_closed = true;
                        break;
                    }
                    block.text.push_str(line.get(indent..).unwrap_or(""));
                    block.text.push('\n');
                }
                page.blocks.push(block);
            } else if let Some(comment) = comment(line) {
                if let Some(needs) = comment.strip_prefix("needs:") {
                    page.needs.extend(needs.split_whitespace().map(str::to_owned));
                }
                page.needs_server |= comment == "needs a server";
            } else if line.starts_with("    ") && !in_list && before.trim().is_empty() {
                page.indented.push(index + 1);
            } else if !trimmed.is_empty() && !line.starts_with(' ') {
                in_list =
                    trimmed.starts_with(['*', '-']) || trimmed.starts_with(|c: char| c.is_ascii_digit());
            }
            before = line;
        }
        page
    }

    pub(super) fn has_commands(&self) -> bool {
        self.blocks.iter().any(Block::is_commands)
    }
}

impl Block {
    /// Whether the block is run by a shell.
    pub(super) fn is_commands(&self) -> bool {
        self.language == "sh" && self.mark == Mark::Usual
    }
}

impl Mark {
    fn read(comment: &str) -> Self {
        let (name, value) = comment.split_once(':').unwrap_or((comment, ""));
        let value = value.trim().to_owned();
        match name {
            "not run" => Self::NotRun(value),
            "file" => Self::File(value),
            "tested in" => Self::TestedIn(value),
            "excerpt" => Self::Excerpt(value),
            "needs" | "needs a server" => Self::Usual,
            _ => Self::Unknown(comment.to_owned()),
        }
    }
}

fn comment(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim())
}
