//! The folders in which agents work.

use std::fs::DirBuilder;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rustix::fs::Mode;
use rustix::io::Errno;
use tokenrail_domain::AgentId;
use tokenrail_ports::{CwdNotAllowed, FolderError, IWorkspace};

use crate::allowed_folders::AllowedFolders;

/// The longest allowed path. Linux has the same limit.
const PATH_BYTES: usize = 4096;

/// Folders on this machine: inside configured roots or allowed folders, or a new one for the agent.
#[derive(Debug, Clone)]
pub struct Workspaces {
    /// The parent of the folders that are created for agents.
    own: PathBuf,
    /// A launch may choose a folder inside one of these.
    roots: Vec<PathBuf>,
    /// Or inside one of those.
    allowed: AllowedFolders,
}

impl Workspaces {
    pub fn new(own: PathBuf, roots: Vec<PathBuf>, allowed: AllowedFolders) -> Self {
        Self { own, roots, allowed }
    }

    fn make_own(&self, agent: AgentId) -> io::Result<PathBuf> {
        let folder = self.own.join(agent.to_string());
        let mut made = rustix::fs::mkdir(&folder, Mode::RWXU);
        if made == Err(Errno::NOENT) {
            // Private, because the names and times of the folders are confidential too.
            DirBuilder::new().recursive(true).mode(0o700).create(&self.own)?;
            made = rustix::fs::mkdir(&folder, Mode::RWXU);
        }
        match made {
            // Its own from an earlier time, and not a link that leads elsewhere.
            Err(Errno::EXIST) if fs::symlink_metadata(&folder)?.is_dir() => {}
            made => made?,
        }
        folder.canonicalize()
    }

    fn inside_a_root(&self, asked: &str) -> Result<PathBuf, CwdNotAllowed> {
        let suspicious = |c: char| c.is_control();
        if PATH_BYTES < asked.len() || asked.contains(suspicious) || !Path::new(asked).is_absolute() {
            return Err(CwdNotAllowed);
        }
        // Without symbolic links and dots, so that the compared path is the one that the agent will enter.
        let folder = Path::new(asked).canonicalize().map_err(|_| CwdNotAllowed)?;
        let is_inside = |roots: &[PathBuf]| {
            roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| folder.starts_with(root))
        };
        let inside = is_inside(&self.roots) || is_inside(&self.allowed_folders());
        if inside && folder.is_dir() { Ok(folder) } else { Err(CwdNotAllowed) }
    }

    fn allowed_folders(&self) -> Vec<PathBuf> {
        self.allowed.list().unwrap_or_else(|error| {
            let path = self.allowed.path().display();
            tracing::warn!(error = &error as &dyn std::error::Error, %path, "cannot read the list of allowed folders, so its folders are not allowed");
            Vec::new()
        })
    }
}

#[async_trait]
impl IWorkspace for Workspaces {
    async fn folder(&self, agent: AgentId, asked: Option<String>) -> Result<PathBuf, FolderError> {
        let workspaces = self.clone();
        let find = move || match asked {
            Some(asked) => Ok(workspaces.inside_a_root(&asked)?),
            None => Ok(workspaces.make_own(agent)?),
        };
        tokio::task::spawn_blocking(find).await.map_err(io::Error::other)?
    }

    async fn remove(&self, agent: AgentId) -> io::Result<()> {
        let folder = self.own.join(agent.to_string());
        tokio::task::spawn_blocking(move || remove_all(&folder)).await.map_err(io::Error::other)?
    }
}

/// Removes a folder with its contents. Symbolic links are removed and not followed.
fn remove_all(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            // Some tools leave read-only folders, whose contents cannot be removed.
            make_writable(folder)?;
            fs::remove_dir_all(folder)
        }
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn make_writable(folder: &Path) -> io::Result<()> {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            // The type of the entry itself: a link to a folder is no folder.
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tokenrail_domain::Timestamp;

    use super::*;

    async fn ask(workspaces: &Workspaces, asked: Option<&Path>) -> Result<PathBuf, FolderError> {
        let agent = AgentId::new(Timestamp(1), [1; 10]);
        workspaces.folder(agent, asked.map(|path| path.to_string_lossy().into_owned())).await
    }

    fn workspaces(data: &Path) -> Workspaces {
        Workspaces::new(data.join("work"), vec![data.join("root")], AllowedFolders::of(data))
    }

    #[tokio::test]
    async fn an_agent_gets_a_folder_of_its_own() {
        let data = tempfile::tempdir().unwrap();
        let workspaces =
            Workspaces::new(data.path().join("work"), Vec::new(), AllowedFolders::of(data.path()));
        let folder = ask(&workspaces, None).await.unwrap();
        assert!(folder.is_dir() && folder.starts_with(data.path().canonicalize().unwrap()));
        fs::write(folder.join("mine"), "").unwrap();
        assert_eq!(ask(&workspaces, None).await.unwrap(), folder);
        assert!(folder.join("mine").exists(), "it is the same folder");

        fs::remove_dir_all(&folder).unwrap();
        symlink(data.path(), &folder).unwrap();
        let refused = ask(&workspaces, None).await;
        assert!(matches!(refused, Err(FolderError::NotMade(_))), "{refused:?}");
    }

    #[tokio::test]
    async fn only_the_folder_of_its_own_is_removed_whatever_the_agent_has_made_of_it() {
        let data = tempfile::tempdir().unwrap();
        let given = data.path().join("root/project");
        fs::create_dir_all(&given).unwrap();
        fs::write(given.join("mine"), "").unwrap();
        let workspaces = workspaces(data.path());
        let agent = AgentId::new(Timestamp(1), [1; 10]);
        workspaces.remove(agent).await.expect("there is none");
        let own = ask(&workspaces, None).await.unwrap();
        fs::create_dir_all(own.join("cache/deep")).unwrap();
        symlink(&given, own.join("link")).unwrap();
        fs::set_permissions(own.join("cache"), Permissions::from_mode(0o500)).unwrap();
        workspaces.remove(agent).await.unwrap();
        assert!(!own.exists());

        symlink(&given, &own).unwrap();
        workspaces.remove(agent).await.unwrap_or_default();
        assert!(given.join("mine").exists(), "a link is not followed");
    }

    #[tokio::test]
    async fn only_folders_inside_a_root_are_allowed() {
        let data = tempfile::tempdir().unwrap();
        let at = |name: &str| data.path().join(name);
        for folder in ["root/project", "root-evil", "outside"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("root/file"), "").unwrap();
        symlink(at("outside"), at("root/link")).unwrap();
        symlink(at("root/project"), at("way-in")).unwrap();
        let workspaces = workspaces(data.path());

        let inside = at("root/project").canonicalize().unwrap();
        for good in ["root/project", "root/project/../project", "way-in"] {
            assert_eq!(ask(&workspaces, Some(&at(good))).await.unwrap(), inside, "{good}");
        }
        for bad in ["root-evil", "outside", "root/link", "root/..", "root/file", "root/missing", "root/a\nb"]
        {
            let refused = ask(&workspaces, Some(&at(bad))).await;
            assert!(matches!(refused, Err(FolderError::NotAllowed(_))), "{bad}");
        }
        AllowedFolders::of(data.path()).allow(&at("outside")).unwrap();
        let allowed = at("outside").canonicalize().unwrap();
        assert_eq!(ask(&workspaces, Some(&at("outside"))).await.unwrap(), allowed);
        assert!(ask(&workspaces, Some(&at("root-evil"))).await.is_err(), "another folder is not");
        let relative = ask(&workspaces, Some(Path::new("root/project"))).await;
        assert!(matches!(relative, Err(FolderError::NotAllowed(_))));
    }
}
