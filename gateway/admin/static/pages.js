// Which pages there are, and in what order they are named.

import { connections } from "./pages/connections.js";
import { delayed } from "./pages/delayed.js";
import { bridges, doors } from "./pages/doors.js";
import { exchanges } from "./pages/exchanges.js";
import { fanOut } from "./pages/fan-out.js";
import { logs, settings } from "./pages/gateway.js";
import { groups } from "./pages/groups.js";
import { letters } from "./pages/letters.js";
import { consumers, retained, subscriptions, vhosts } from "./pages/lists.js";
import { log } from "./pages/log.js";
import { message } from "./pages/message.js";
import { overview } from "./pages/overview.js";
import { policies } from "./pages/policies.js";
import { queues } from "./pages/queues.js";
import { rights } from "./pages/rights.js";
import { route } from "./pages/route.js";
import { sessions } from "./pages/sessions.js";
import { files, held } from "./pages/storage.js";
import { topics } from "./pages/topics.js";
import { users } from "./pages/users.js";

export const PAGES = {
  overview, route, log, message, connections, sessions, subscriptions, retained,
  queues, exchanges, consumers, vhosts, policies, groups, users, logs, settings, topics,
  letters, delayed, doors, bridges, rights, held, files, "fan-out": fanOut,
};

// Pages that show nothing to others.
export const FOR_ADMINISTRATORS = new Set(["message", "users", "rights", "settings", "logs"]);

// Pages that tell of the gateway as a whole.
export const FOR_MONITORS = new Set(["doors", "bridges", "held", "files"]);

export const NAVIGATION = [
  ["", [["overview", "Overview"], ["connections", "Connections"], ["route", "Where does it go?"], ["message", "Where did it go?"], ["log", "The log's queues"], ["groups", "Groups"], ["fan-out", "Fan-out"], ["letters", "Dead letters"], ["delayed", "Delayed"]]],
  ["MQTT", [["topics", "Topics"], ["sessions", "Sessions"], ["subscriptions", "Subscriptions"], ["retained", "Retained"]]],
  ["AMQP", [["queues", "Queues"], ["exchanges", "Exchanges"], ["consumers", "Consumers"], ["policies", "Policies"], ["vhosts", "Virtual hosts"]]],
  ["Gateway", [["doors", "Doors"], ["bridges", "Bridges"], ["held", "Held back"], ["files", "Log files"], ["users", "Users"], ["rights", "Rights"], ["settings", "Settings"], ["logs", "Log lines"]]],
];
