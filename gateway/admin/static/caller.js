// Who looks at the console. Without a name it did not log in: where a login is needed the browser asks for it.

import { get } from "./api.js";

const caller = { name: "", tags: [] };

export async function askCaller() {
  try {
    Object.assign(caller, await get("api/lmq/caller"));
  } catch {
    // The page that is shown tells what is wrong.
  }
}

// Whether it is worth asking for what only administrators are told.
export const mayAskAll = () => caller.name === "" || caller.tags.includes("administrator");
