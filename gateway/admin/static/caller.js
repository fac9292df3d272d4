// Who looks at the console. Without a name it did not log in: where a login is needed the browser asks for it.

import { get } from "./api.js";

export const caller = { name: "", tags: [] };

// Says whether it is another one than before.
export async function askCaller() {
  const before = caller.name;
  try {
    Object.assign(caller, await get("api/lmq/caller"));
  } catch {
    // The page that is shown tells what is wrong.
  }
  return caller.name !== before;
}

// Whether it is told of everything, not of its own virtual hosts and sessions alone.
export const seesAll = () => mayAskAll() || caller.tags.includes("monitoring");

// Whether it is worth asking for what only administrators are told, and offering what only they may do.
export const mayAskAll = () => caller.name === "" || caller.tags.includes("administrator");
