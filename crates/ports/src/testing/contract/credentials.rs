//! Credentials that every node accepts.

use std::time::Duration;

use super::nodes::{Servers, SharedStore};
use crate::{
    Credential, CredentialDigest, CredentialKind, CredentialRoom, CredentialScope, ICredentials, WhenFull,
};

const HOUR: Duration = Duration::from_hours(1);
const ROOM: CredentialRoom = CredentialRoom { max: 9, when_full: WhenFull::Refuse };

fn digest(n: u8) -> CredentialDigest {
    CredentialDigest([n; 32])
}

fn credential(kind: CredentialKind, n: u8, life: Duration) -> Credential {
    let scope = match n % 3 {
        0 => CredentialScope::default(),
        1 => CredentialScope { path: Some("/ws".into()), origin: None },
        _ => CredentialScope { path: None, origin: Some("https://app.example".into()) },
    };
    Credential { kind, digest: digest(n), scope, life }
}

async fn redeems(store: &impl ICredentials, kind: CredentialKind, n: u8) -> bool {
    store.redeem(kind, digest(n)).await.unwrap().is_some()
}

/// Whether a credential is valid. It stays so.
async fn is_valid(store: &impl ICredentials, kind: CredentialKind, n: u8) -> bool {
    store.find(kind, digest(n)).await.unwrap().is_some()
}

pub async fn a_credential_of_one_node_is_used_once_at_any_node<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, third, .. } = servers;
    for kind in CredentialKind::ALL {
        for n in 0..3 {
            let new = credential(kind, n, HOUR);
            assert!(one.add(new.clone(), ROOM).await.unwrap());
            let redeemed = other.redeem(kind, digest(n)).await.unwrap().unwrap();
            assert_eq!(redeemed.scope, new.scope);
            assert!(Duration::from_mins(59) < redeemed.left && redeemed.left <= HOUR, "{redeemed:?}");
            for store in [one, other, third] {
                assert!(!redeems(store, kind, n).await && !is_valid(store, kind, n).await);
            }
        }
    }
    assert!(!redeems(other, CredentialKind::Ticket, 9).await, "a guess");
}

pub async fn one_of_two_nodes_redeems_a_credential<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    for n in 0..9 {
        assert!(one.add(credential(CredentialKind::Ticket, n, HOUR), ROOM).await.unwrap());
        let kind = CredentialKind::Ticket;
        let (first, second) = tokio::join!(redeems(one, kind, n), redeems(other, kind, n));
        assert!(first != second, "{n}: {first} {second}");
    }
}

pub async fn a_credential_is_valid_for_its_kind_and_its_time<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    assert!(one.add(credential(CredentialKind::Ticket, 1, HOUR), ROOM).await.unwrap());
    assert!(!redeems(other, CredentialKind::LoginCode, 1).await);
    assert!(redeems(other, CredentialKind::Ticket, 1).await);
    for kind in CredentialKind::ALL {
        assert!(one.add(credential(kind, 2, Duration::ZERO), ROOM).await.unwrap());
        assert!(!is_valid(other, kind, 2).await && !redeems(other, kind, 2).await, "it has expired");
    }
}

pub async fn a_credential_that_is_found_stays<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let kind = CredentialKind::OpenedStream;
    let new = credential(kind, 1, HOUR);
    assert!(one.add(new.clone(), ROOM).await.unwrap());
    for store in [one, other, one] {
        assert_eq!(store.find(kind, digest(1)).await.unwrap().unwrap().scope, new.scope);
    }
    assert!(redeems(other, kind, 1).await);
}

pub async fn there_is_room_for_so_many_credentials_of_each_kind<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let room = CredentialRoom { max: 2, ..ROOM };
    for kind in CredentialKind::ALL {
        assert!(one.add(credential(kind, 0, Duration::ZERO), room).await.unwrap());
        assert!(one.add(credential(kind, 1, HOUR), room).await.unwrap(), "one that has expired needs none");
        assert!(other.add(credential(kind, 2, HOUR), room).await.unwrap());
        assert!(!one.add(credential(kind, 3, HOUR), room).await.unwrap());
        assert!(!is_valid(one, kind, 3).await);
        assert!(redeems(other, kind, 1).await);
        assert!(one.add(credential(kind, 3, HOUR), room).await.unwrap(), "one was used up");
    }
}

pub async fn the_oldest_credential_makes_room<S: SharedStore>(servers: &Servers<S>) {
    let Servers { one, other, .. } = servers;
    let room = CredentialRoom { max: 2, when_full: WhenFull::ReplaceOldest };
    let kind = CredentialKind::LoginCode;
    for (n, hours) in [(1, 2), (2, 1), (3, 3)] {
        assert!(other.add(credential(kind, n, HOUR * hours), room).await.unwrap());
    }
    let mut valid = Vec::new();
    for n in 1..4 {
        valid.push(is_valid(one, kind, n).await);
    }
    assert_eq!(valid, [true, false, true]);
}
