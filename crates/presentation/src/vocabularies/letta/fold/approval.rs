//! The agent's permission requests. Letta's own agents end their run with a request. Tokenrail's agents wait within the
//! run, so the run continues.

use tokenrail_domain::{Event, Notice, event_id};

use super::{LettaFold, LettaFrame};
use crate::vocabularies::letta::dto::{LettaApproval, LettaSaid, LettaToolCall, LettaToolCalls};
use crate::vocabularies::turns::permission_notices::{AskedPermission, PermissionNotice, Settling};

impl LettaFold {
    pub(super) fn notice(&mut self, event: &Event, notice: &Notice, out: &mut Vec<LettaFrame>) {
        let said = match PermissionNotice::of(notice) {
            Some(PermissionNotice::Asked(request)) => Some(self.asked(event, request)),
            Some(PermissionNotice::Settled(settling)) => self.settled(&settling),
            None => None,
        };
        out.extend(said.map(|said| LettaFrame::Message(Box::new(self.of_event(event, said)))));
    }

    fn asked(&mut self, event: &Event, request: AskedPermission) -> LettaSaid {
        let call = request.call().to_owned();
        self.approvals.ask(&request, &call);
        self.asked_in.insert(request.request_id.clone(), format!("message-{}", event_id(self.agent, event)));
        let tool_call = LettaToolCall {
            arguments: Some(request.input().as_str().to_owned()),
            name: Some(request.tool_name),
            tool_call_id: call,
        };
        let tool_calls = LettaToolCalls::Whole([tool_call.clone()]);
        LettaSaid::ApprovalRequest { tool_call, tool_calls, request_id: request.request_id }
    }

    fn settled(&mut self, settling: &Settling) -> Option<LettaSaid> {
        let verdict = self.approvals.settle(settling)?;
        let approval_request_id = self.asked_in.remove(&settling.request_id)?;
        let reason = settling.reason().to_owned();
        let approval = LettaApproval {
            kind: "approval",
            tool_call_id: verdict.call,
            approve: verdict.approved,
            reason: reason.clone(),
        };
        let approvals = [approval];
        Some(LettaSaid::ApprovalResponse {
            approve: verdict.approved,
            approval_request_id,
            reason,
            approvals,
        })
    }
}
