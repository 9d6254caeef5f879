// What is loaded first: it asks for the conversation while the view that shows it is still on its way.
import { createClient } from "@tokenrail/client";
import { preloadAgentMessages } from "@tokenrail/client/react";

import { agentIn } from "./app/route.ts";
import { keepToken, takeToken } from "./app/token.ts";
import "./styles/index.css";

const token = takeToken();
const client = createClient({ token });
const agentId = agentIn(location.pathname);
// Without a token each request might be a failed login.
if (token && agentId) preloadAgentMessages(client, agentId);
if (token) keepToken(token);
void import("./view.tsx").then(({ show }) => show(client, token));
