// What a plain Node program gets of the package: the names, and where they are from.
const core = await import("@tokenrail/client");
const react = await import("@tokenrail/client/react");
console.log(JSON.stringify({ core: Object.keys(core), react: Object.keys(react), from: import.meta.resolve("@tokenrail/client") }));
