export { TokenrailProvider, useTokenrail } from "./provider.js";
export { type Preload, type UseAgentMessages, preloadAgentMessages, useAgentMessages } from "./useAgentMessages.js";
export { type UseAgents, useAgents } from "./useAgents.js";
export { useConnection } from "./useConnection.js";
