// Which pages there are, and in what order they are named.

import { connections } from "./pages/connections.js";
import { exchanges } from "./pages/exchanges.js";
import { logs, settings } from "./pages/gateway.js";
import { consumers, groups, policies, retained, subscriptions, users, vhosts } from "./pages/lists.js";
import { log } from "./pages/log.js";
import { message } from "./pages/message.js";
import { overview } from "./pages/overview.js";
import { queues } from "./pages/queues.js";
import { route } from "./pages/route.js";
import { sessions } from "./pages/sessions.js";
import { topics } from "./pages/topics.js";

export const PAGES = {
  overview, route, log, message, connections, sessions, subscriptions, retained,
  queues, exchanges, consumers, vhosts, policies, groups, users, logs, settings, topics,
};

export const NAVIGATION = [
  ["", [["overview", "Overview"], ["connections", "Connections"], ["route", "Where does it go?"], ["message", "Where did it go?"], ["log", "The log's queues"]]],
  ["MQTT", [["topics", "Topics"], ["sessions", "Sessions"], ["subscriptions", "Subscriptions"], ["retained", "Retained"]]],
  ["AMQP", [["queues", "Queues"], ["exchanges", "Exchanges"], ["consumers", "Consumers"], ["policies", "Policies"], ["vhosts", "Virtual hosts"]]],
  ["RocketMQ", [["groups", "Groups"]]],
  ["Gateway", [["users", "Users"], ["settings", "Settings"], ["logs", "Log lines"]]],
];
