//! The configured limits, as the structs of the crates that enforce them. `store.rs` has those of the store,
//! and `compose.rs` those of single runners.

use std::time::Duration;

use tokenrail_application::{
    AdmissionLimits, CommandLimits, Limits, ListingLimits, NodeLimits, ReadingLimits, RunLimits, SavingLimits,
};
use tokenrail_presentation::{ListenLimits, PresentationConfig, SocketLimits};
use tokenrail_runner::{ProcessLimits, RepositoryLimits};

use crate::config::{ClusterConfig, Config, LimitsConfig};

/// The limits of the application, as configured.
pub(crate) fn all_limits(config: &Config) -> Limits {
    let ClusterConfig {
        name: _,
        beat_s,
        lost_after_s,
        away_s,
        // For `cli/serve.rs`.
        on_stop: _,
        // For the store.
        failover_keep_s: _,
        failover_keep_bytes: _,
    } = &config.cluster;
    let limits = application_limits(&config.limits);
    let nodes = NodeLimits {
        beat: Duration::from_secs(*beat_s),
        lost_after: Duration::from_secs(*lost_after_s),
        away: Duration::from_secs(*away_s),
        ..limits.nodes
    };
    Limits { nodes, ..limits }
}

/// The same, without those of `[cluster]`, which are the defaults.
pub(crate) fn application_limits(limits: &LimitsConfig) -> Limits {
    let defaults = Limits::default();
    Limits {
        admission: AdmissionLimits {
            running_agents: limits.running_agents,
            launches_per_minute: limits.launches_per_minute,
            queued_launches: limits.queued_launches,
            queued_turns: limits.queued_turns,
            imports: limits.imports,
            child_agents: limits.child_agents,
            child_depth: limits.child_depth,
        },
        run: RunLimits {
            stream_timeout: Duration::from_secs(limits.stream_timeout_s),
            idle_timeout: Duration::from_secs(limits.idle_timeout_s),
            turn_timeout: Duration::from_secs(limits.turn_timeout_s),
            result_grace: Duration::from_secs(limits.result_grace_s),
            disconnect_grace: Duration::from_secs(limits.disconnect_grace_s),
            message_bytes: limits.message_bytes,
            spool_bytes: limits.spool_bytes,
        },
        commands: CommandLimits {
            shutdown_timeout: Duration::from_secs(limits.shutdown_timeout_s),
            answer_timeout: Duration::from_secs(limits.answer_timeout_s),
            // JSON may need six bytes for one byte, and the answer must fit into a line of the spool.
            answer_text_bytes: limits.answer_text_bytes.min(limits.line_bytes / 8),
            command_timeout: Duration::from_secs(limits.command_timeout_s),
            idempotency: Duration::from_secs(limits.idempotency_hours.saturating_mul(3600)),
            ..defaults.commands
        },
        saving: SavingLimits {
            pending_events: limits.pending_events,
            pending_bytes: limits.pending_bytes,
            follower_wait: Duration::from_millis(limits.follower_wait_ms),
            follower_wait_from: limits.follower_wait_from,
            full_disk_wait: Duration::from_secs(limits.full_disk_wait_s),
            ..defaults.saving
        },
        reading: ReadingLimits {
            page_events: limits.page_events,
            page_bytes: limits.page_bytes,
            history_events: limits.history_events,
            history_bytes: limits.history_bytes,
            tail_bytes: limits.tail_bytes,
            tails_bytes: limits.tails_bytes,
            model_history_bytes: limits.model_history_bytes,
        },
        nodes: NodeLimits {
            start_wait: Duration::from_millis(limits.postgres_start_wait_ms),
            ..defaults.nodes
        },
        lists: ListingLimits {
            list_agents: limits.list_agents,
            list_bytes: limits.list_bytes,
            list_field_bytes: limits.list_field_bytes,
        },
    }
}

pub(crate) fn process_limits(limits: &LimitsConfig) -> ProcessLimits {
    ProcessLimits {
        line_bytes: limits.line_bytes,
        output_lines: limits.output_lines,
        cancel_grace_ms: in_ms(limits.cancel_grace_s),
        kill_grace_ms: in_ms(limits.kill_grace_s),
        spawn_timeout_ms: in_ms(limits.spawn_timeout_s),
        exit_patience_ms: in_ms(limits.exit_patience_s),
        full_disk_wait_ms: in_ms(limits.full_disk_wait_s),
        agent_processes: limits.agent_processes,
        agent_memory_bytes: limits.agent_memory_bytes,
        agent_nice: limits.agent_nice,
        stderr_bytes: limits.stderr_bytes,
        open_questions: limits.open_questions,
        unread_bytes: limits.unread_bytes,
        file_bytes: limits.file_bytes,
        exit_grace_ms: in_ms(limits.result_grace_s),
        idle_agents: limits.resting_agents,
        ..ProcessLimits::default()
    }
}

pub(crate) fn repository_limits(limits: &LimitsConfig) -> RepositoryLimits {
    RepositoryLimits {
        changes_at_once: limits.changes_at_once,
        changes_timeout_ms: in_ms(limits.changes_timeout_s),
        changes_memory_bytes: limits.changes_memory_bytes,
        changes_files: limits.changes_files,
        patch_bytes: limits.patch_bytes,
        ..RepositoryLimits::default()
    }
}

/// The limits of the presentation. `access` has the rules about access, which stay.
pub(crate) fn presentation_limits(limits: &LimitsConfig, access: PresentationConfig) -> PresentationConfig {
    PresentationConfig {
        request_bytes: limits.request_bytes,
        chat_bytes: limits.chat_bytes,
        chats_bytes: limits.chats_bytes,
        prompt_images: limits.prompt_images,
        image_bytes: limits.image_bytes,
        prompt_image_bytes: limits.prompt_image_bytes,
        connections: limits.connections,
        stream_turn_bytes: limits.stream_turn_bytes,
        subscriptions_per_connection: limits.subscriptions_per_connection,
        streams_per_peer: limits.streams_per_peer,
        unauthenticated_clients: limits.unauthenticated_clients,
        unauthenticated_clients_per_peer: limits.unauthenticated_clients_per_peer,
        handshake_timeout: Duration::from_secs(limits.handshake_timeout_s),
        failed_logins_per_minute: limits.failed_logins_per_minute,
        peers: limits.peers,
        ticket_resume: Duration::from_secs(limits.ticket_resume_s),
        session: Duration::from_secs(limits.session_s),
        header_bytes: limits.header_bytes,
        headers: limits.headers,
        body_timeout: Duration::from_secs(limits.body_timeout_s),
        list_agents: limits.list_agents,
        list_bytes: limits.list_bytes,
        imports: limits.imports,
        import_bytes: limits.import_bytes,
        import_event_bytes: limits.import_event_bytes,
        import_timeout: Duration::from_secs(limits.import_timeout_s),
        ..access
    }
}

pub(crate) fn listen_limits(limits: &LimitsConfig) -> ListenLimits {
    let sockets = socket_limits(limits);
    ListenLimits {
        connections: limits.connections,
        flush_timeout: sockets.send_timeout,
        sockets,
        ..ListenLimits::default()
    }
}

pub(crate) fn socket_limits(limits: &LimitsConfig) -> SocketLimits {
    SocketLimits {
        send_buffer_bytes: limits.send_buffer_bytes,
        send_timeout: Duration::from_secs(limits.send_timeout_s),
    }
}

/// Saturates. The configuration file rejects values this large, but a [`Config`] can be built without one.
pub(super) fn in_ms(seconds: u64) -> u64 {
    seconds.saturating_mul(1000)
}
