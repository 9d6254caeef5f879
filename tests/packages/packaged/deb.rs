//! The Debian package, installed by `dpkg` into a copy of this system that nobody else sees.

mod unit;

use std::process::Command;

use super::package;

/// Runs a script as root on top of this system's files: a file system of its own has the changes, and is gone with the
/// script. The package is `/tokenrail.deb` there.
fn on_a_copy_of_this_system(script: &str) -> String {
    const SET_UP: &str = r#"
        set -e
        copy=$(mktemp -d)
        trap 'rm -rf "$copy"' EXIT
        unshare --mount --pid --fork --kill-child sh -ec '
            mount -t tmpfs tmpfs "$0"
            mkdir "$0/upper" "$0/work" "$0/root"
            mount -t overlay overlay -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0/root"
            cp "$1" "$0/root/tokenrail.deb"
            mount -t proc proc "$0/root/proc"
            mount --rbind /dev "$0/root/dev"
            # The temporary files of this system may be on another file system, and the copy has none of systemd.
            mount -t tmpfs tmpfs "$0/root/tmp"
            mount -t tmpfs tmpfs "$0/root/run"
            exec chroot "$0/root" sh -exc "$2"
        ' "$copy" "$1" "$2" 2>&1
    "#;
    let deb = package("tokenrail_", "_amd64.deb");
    let mut command = Command::new("sh");
    command.args(["-c", SET_UP, "sh"]).arg(deb).arg(script).current_dir("/");
    command.env("DEBIAN_FRONTEND", "noninteractive").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    printed
}

#[test]
fn it_installs_and_the_demo_runs_as_its_user() {
    let printed = on_a_copy_of_this_system(
        "dpkg --install /tokenrail.deb
         test \"$(getent passwd tokenrail | cut -d: -f6)\" = /var/lib/tokenrail/home
         test ! -e /etc/systemd/system/multi-user.target.wants/tokenrail.service
         bash -n /usr/share/bash-completion/completions/tokenrail
         gzip --test /usr/share/man/man1/tokenrail.1.gz
         tokenrail --version
         install -d -o tokenrail -m 0700 /var/lib/tokenrail/data
         cd /
         setpriv --reuid=tokenrail --regid=tokenrail --clear-groups env HOME=/var/lib/tokenrail/data \\
             tokenrail demo --once --speed 0 --listen 127.0.0.1:0 --color=never \\
                 --config /etc/tokenrail/tokenrail.toml --data-dir /var/lib/tokenrail/data",
    );
    super::assert_demo(&printed);
}

#[test]
fn the_system_understands_both_units_completely() {
    let printed = on_a_copy_of_this_system(
        "dpkg --install /tokenrail.deb >/dev/null
         echo before
         systemd-analyze verify tokenrail.service
         XDG_RUNTIME_DIR=/run systemd-analyze verify --user tokenrail.service
         echo after",
    );
    let said = printed.split_once("+ echo before").expect("it begins").1;
    let complaints = said.lines().filter(|line| line.contains("tokenrail.service:"));
    assert_eq!(complaints.collect::<Vec<_>>(), [""; 0], "{printed}");
}

#[test]
fn a_removal_keeps_the_data_and_a_purge_deletes_it_unless_it_is_in_use() {
    on_a_copy_of_this_system(
        "dpkg --install /tokenrail.deb
         install -d -o tokenrail -m 0700 /var/lib/tokenrail /var/lib/tokenrail/data
         dpkg --remove tokenrail
         test -d /var/lib/tokenrail/data && test -f /etc/tokenrail/tokenrail.toml

         dpkg --install /tokenrail.deb
         setpriv --reuid=tokenrail --regid=tokenrail --clear-groups sleep 600 &
         until find /proc -mindepth 1 -maxdepth 1 -user tokenrail | grep -q .; do :; done
         dpkg --purge tokenrail
         test -d /var/lib/tokenrail/data
         kill $!
         wait $! || true

         dpkg --install /tokenrail.deb
         mv /var/lib/tokenrail /srv/elsewhere
         ln -s /srv/elsewhere /var/lib/tokenrail
         dpkg --purge tokenrail
         test -d /srv/elsewhere/data
         rm /var/lib/tokenrail
         mv /srv/elsewhere /var/lib/tokenrail

         dpkg --install /tokenrail.deb
         systemctl enable tokenrail.service
         test -L /etc/systemd/system/multi-user.target.wants/tokenrail.service
         dpkg --purge tokenrail
         test ! -L /etc/systemd/system/multi-user.target.wants/tokenrail.service
         test ! -e /var/lib/tokenrail && test ! -e /etc/tokenrail && test ! -e /usr/bin/tokenrail",
    );
}

#[test]
fn lintian_finds_nothing() {
    let deb = package("tokenrail_", "_amd64.deb");
    let mut lintian = Command::new("lintian");
    let output = lintian.args(["--allow-root", "--display-level", ">=info"]).arg(deb).output().unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && found.trim().is_empty(), "{found}");
}
