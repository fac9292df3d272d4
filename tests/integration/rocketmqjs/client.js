// Runs scenarios of ali-ons one by one and prints what each counted: node client.js NAMESRV COUNT ADMIN
"use strict";

const { Consumer, Message, Producer } = require("ali-ons");

const [namesrv, count, admin] = [process.argv[2], Number(process.argv[3]), process.argv[4]];
const LIMIT_MS = 60000;
const SETTLE_MS = 500; // in which what comes twice shows
const logger = { info() {}, debug() {}, warn() {}, error(...words) { console.error(...words); } };
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const httpclient = {}; // wanted, and not used where the name server is given
let producer;

/** Which bodies were to come, and which came. */
class Counts {
  constructor() {
    this.wanted = new Set();
    this.seen = new Map();
    this.misplaced = 0; // with wrong attempts or too early
  }

  came(body) {
    this.seen.set(body, (this.seen.get(body) ?? 0) + 1);
  }

  complete() {
    return [...this.wanted].every((body) => this.seen.has(body));
  }

  async wait() {
    for (const end = Date.now() + LIMIT_MS; !this.complete() && Date.now() < end;) await sleep(20);
    await sleep(SETTLE_MS);
  }

  print(name) {
    const received = [...this.seen.values()].reduce((sum, times) => sum + times, 0);
    const lost = [...this.wanted].filter((body) => !this.seen.has(body)).length;
    const wrong = [...this.seen.keys()].filter((body) => !this.wanted.has(body)).length + this.misplaced;
    console.log(`${name} sent=${this.wanted.size} received=${received} duplicated=${received - this.seen.size} `
      + `lost=${lost} wrong=${wrong}`);
  }
}

async function send(topic, counts, from, to, change = () => {}) {
  for (let n = from; n < to; n++) {
    const message = new Message(topic, "abc"[n % 3], `${topic} ${n}`);
    message.properties.n = String(n);
    change(message, n);
    const body = message.body.toString(); // before it is compressed in its place
    await producer.send(message);
    counts.wanted.add(body);
  }
}

/** Start a consumer in the group of the topic's name, whose handler it is. */
async function consume(topic, filter, handler, options = {}) {
  const consumer = new Consumer({
    consumerGroup: topic, nameSrv: [namesrv], httpclient, logger, consumeFromWhere: "CONSUME_FROM_FIRST_OFFSET", ...options,
  });
  consumer.on("error", () => {}); // a message that fails on purpose
  consumer.subscribe(topic, filter, handler);
  await consumer.ready();
  return consumer;
}

const scenarios = {
  async push(topic, counts) {
    await send(topic, counts, 0, count / 2);
    await consume(topic, "*", async (message) => counts.came(message.body.toString()));
    await send(topic, counts, count / 2, count);
    await counts.wait();
  },

  async large(topic, counts) {
    await send(topic, counts, 0, count / 10, (message) => {
      message.body = Buffer.from(message.body.toString() + "-".repeat(100000)); // is compressed
    });
    await consume(topic, "*", async (message) => counts.came(message.body.toString()));
    await counts.wait();
  },

  async tag(topic, counts) {
    await filtered(topic, counts, "a || c");
  },

  async sql(topic, counts) {
    await filtered(topic, counts, {
      expressionType: "SQL92", subString: "TAGS IN ('a', 'c') AND n BETWEEN 0 AND 1000000 AND x IS NULL",
    });
  },

  /** Two seconds off; the client's own setStartDeliverTime is for another service than Apache's brokers. */
  async timed(topic, counts) {
    const due = Date.now() + 2000;
    await send(topic, counts, 0, count, (message) => { message.properties.TIMER_DELIVER_MS = String(due); });
    await consume(topic, "*", async (message) => {
      if (Date.now() < due) counts.misplaced++;
      counts.came(message.body.toString());
    });
    await counts.wait();
  },

  async delayed(topic, counts) {
    await send(topic, counts, 0, count, (message) => { message.properties.DELAY = "1"; });
    await consume(topic, "*", async (message) => {
      if (Date.now() < message.bornTimestamp + 1000) counts.misplaced++;
      counts.came(message.body.toString());
    });
    await counts.wait();
  },

  /** Each tenth message fails at its first attempt, and comes again by the broker's delay (10 s). */
  async retry(topic, counts) {
    await send(topic, counts, 0, count);
    await consume(topic, "*", async (message) => {
      if (message.properties.n % 10 === 0 && message.reconsumeTimes === 0) throw new Error("on purpose");
      if (message.reconsumeTimes !== (message.properties.n % 10 === 0 ? 1 : 0)) counts.misplaced++;
      counts.came(message.body.toString());
    });
    await counts.wait();
  },

  /** The same by an answer in place of an error. */
  async "retry-by-answer"(topic, counts) {
    await send(topic, counts, 0, count);
    await consume(topic, "*", async (message) => {
      if (message.properties.n % 10 === 0 && message.reconsumeTimes === 0) return Consumer.ACTION_RETRY;
      counts.came(message.body.toString());
    });
    await counts.wait();
  },

  /** Each message is given up at once; then an operator sends all letters back, and the group has each as if new. */
  async "sent-back"(topic, counts) {
    let failures = 0;
    let isWell = false;
    await send(topic, counts, 0, count);
    await consume(topic, "*", async (message) => {
      if (!isWell) {
        failures++;
        throw new Error("on purpose");
      }
      if (message.reconsumeTimes !== 0) counts.misplaced++;
      counts.came(message.body.toString());
    }, { maxReconsumeTimes: 0 });
    for (const end = Date.now() + LIMIT_MS; failures < count && Date.now() < end;) await sleep(20);
    await sleep(1000); // the last ones are sent to the letters
    isWell = true;
    await sendBack(topic);
    await counts.wait();
  },
};

/** Ask the operators' door to send a group's letters back. */
async function sendBack(group) {
  const answer = await fetch(`http://${admin}/api/lmq/move`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa("guest:guest")}`, "content-type": "application/json" },
    body: JSON.stringify({ door: "rocketmq", source: `%DLQ%${group}`, count: 10000 }),
  });
  const { moved, left } = await answer.json();
  if (moved !== count || left) throw new Error(`sent back ${moved}, ${left} left`);
}

/** Tags a, b and c in turn; those with b are not wanted. */
async function filtered(topic, counts, filter) {
  await send(topic, counts, 0, count);
  for (let n = 1; n < count; n += 3) counts.wanted.delete(`${topic} ${n}`);
  await consume(topic, filter, async (message) => counts.came(message.body.toString()));
  await counts.wait();
}

async function main() {
  producer = new Producer({ producerGroup: "js-senders", nameSrv: [namesrv], httpclient, logger });
  await producer.ready();
  for (const [name, run] of Object.entries(scenarios)) {
    const counts = new Counts();
    await run(`js-${name}`, counts);
    counts.print(name);
  }
  process.exit(0);
}

main();
