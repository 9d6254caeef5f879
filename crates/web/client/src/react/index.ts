export { type Preload, preloadAgentMessages } from "./preload.js";
export { TokenrailProvider, useTokenrail } from "./provider.js";
export { type UseAgentMessages, useAgentMessages } from "./useAgentMessages.js";
export { type UseAgents, useAgents } from "./useAgents.js";
export { useConnection } from "./useConnection.js";
