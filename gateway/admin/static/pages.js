// Which pages there are, and in what order they are named.

import { exchanges } from "./pages/exchanges.js";
import { overview } from "./pages/overview.js";
import { queues } from "./pages/queues.js";
import { route } from "./pages/route.js";

export const PAGES = { overview, queues, exchanges, route };

export const NAVIGATION = [
  ["", [["overview", "Overview"], ["route", "Where does it go?"]]],
  ["AMQP", [["queues", "Queues"], ["exchanges", "Exchanges"]]],
];
