/** The type of the agents that play the recorded session. */
export const demo = "demo";
