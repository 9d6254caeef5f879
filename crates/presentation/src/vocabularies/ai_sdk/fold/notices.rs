//! The agent's notices, including its permission requests.

use tokenrail_domain::Notice;

use super::{AiSdk, AiSdkFold, CallState, SdkVersion};
use crate::fold::Frames;
use crate::vocabularies::ai_sdk::dto::{Chunk, ForeignJson, NoticeDto, Yes};
use crate::vocabularies::turns::permission_notices::{AskedPermission, PermissionNotice, Settling};

impl AiSdkFold {
    pub(super) fn notice(&mut self, notice: &Notice, out: &mut impl Frames<AiSdk>) {
        let data = NoticeDto { subtype: &notice.subtype, data: ForeignJson(&notice.data) };
        out.frame(&Chunk::Notice { data, transient: Yes });
        if SdkVersion::V6 <= self.version {
            match PermissionNotice::of(notice) {
                Some(PermissionNotice::Asked(request)) => self.asked(&request, out),
                Some(PermissionNotice::Settled(settling)) => self.settled(&settling, out),
                None => {}
            }
        }
    }

    /// The SDK supports permission requests only for a tool call that has no result yet.
    fn asked(&mut self, request: &AskedPermission, out: &mut impl Frames<AiSdk>) {
        let Some(call) = &request.tool_call_id else { return };
        if matches!(self.calls.state(call), Some(CallState::Done | CallState::Cut)) {
            return;
        }
        self.begin_step(out);
        self.call_made((call, &request.tool_name), &request.input(), None, out);
        self.approvals.ask(request, call);
        out.frame(&Chunk::ToolApprovalRequest { approval_id: &request.request_id, tool_call_id: call });
    }

    fn settled(&mut self, settling: &Settling, out: &mut impl Frames<AiSdk>) {
        let Some(verdict) = self.approvals.settle(settling) else { return };
        // The call may already have a result, or was discarded with its step.
        if self.calls.state(&verdict.call) != Some(CallState::Made) {
            return;
        }
        if SdkVersion::V7 <= self.version {
            out.frame(&Chunk::ToolApprovalResponse {
                approval_id: &settling.request_id,
                approved: verdict.approved,
                reason: settling.reason(),
                provider_executed: Yes,
            });
        }
        if !verdict.approved {
            self.calls.set(&verdict.call, "", CallState::Done);
            out.frame(&Chunk::ToolOutputDenied { tool_call_id: &verdict.call });
        }
    }
}
