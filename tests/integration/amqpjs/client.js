"use strict";
// amqplib against the AMQP door: `node client.js URL COUNT` prints a line of counts for each scenario.
const amqp = require("amqplib");

const [url, text] = process.argv.slice(2);
const COUNT = Number(text);

function tell(name, sent, bodies, wrong = 0) {
  const seen = new Set(bodies);
  const lost = sent - seen.size;
  console.log(`${name} sent=${sent} received=${bodies.length} duplicated=${bodies.length - seen.size} lost=${lost} wrong=${wrong}`);
}

function collect(channel, queue, count, options, take) {
  return new Promise((resolve, reject) => {
    const bodies = [];
    const timer = setTimeout(() => resolve(bodies), 20_000);
    channel
      .consume(queue, (message) => {
        if (message === null) return;
        if (take && !take(message)) return;
        bodies.push(message.content.toString());
        if (!options.noAck) channel.ack(message);
        if (bodies.length === count) {
          clearTimeout(timer);
          setTimeout(() => resolve(bodies), 200); // what comes twice
        }
      }, options)
      .catch(reject);
  });
}

async function publish(channel, exchange, key, count, options = {}) {
  for (let i = 0; i < count; i++) channel.publish(exchange, key, Buffer.from(String(i)), options);
  await channel.waitForConfirms();
}

const SCENARIOS = {
  async confirmed(channel) {
    const { queue } = await channel.assertQueue("js-confirmed", { durable: true });
    await channel.prefetch(16);
    const got = collect(channel, queue, COUNT, {});
    await publish(channel, "", queue, COUNT, { persistent: true });
    return [COUNT, await got];
  },
  async large(channel) {
    const { queue } = await channel.assertQueue("", { exclusive: true });
    let wrong = 0;
    const got = collect(channel, queue, 4, {}, (message) => {
      const size = message.content.length;
      if (size !== 1_000_000) wrong += 1;
      message.content = Buffer.from(message.properties.messageId);
      return true;
    });
    for (let i = 0; i < 4; i++) channel.sendToQueue(queue, Buffer.alloc(1_000_000, i), { messageId: String(i) });
    await channel.waitForConfirms();
    return [4, await got, wrong];
  },
  async requeued(channel) {
    const { queue } = await channel.assertQueue("", { exclusive: true });
    let wrong = 0;
    const got = collect(channel, queue, COUNT, {}, (message) => {
      if (message.fields.redelivered) return true;
      channel.nack(message, false, true);
      return false;
    });
    await publish(channel, "", queue, COUNT);
    return [COUNT, await got, wrong];
  },
  async "dead-letters"(channel) {
    const dead = await channel.assertQueue("", { exclusive: true });
    const work = await channel.assertQueue("", {
      exclusive: true, deadLetterExchange: "", deadLetterRoutingKey: dead.queue,
    });
    let wrong = 0;
    const got = collect(channel, dead.queue, COUNT, {}, (message) => {
      const death = (message.properties.headers["x-death"] || [])[0] || {};
      if (death.reason !== "rejected" || death.queue !== work.queue) wrong += 1;
      return true;
    });
    await channel.consume(work.queue, (message) => channel.nack(message, false, false));
    await publish(channel, "", work.queue, COUNT);
    return [COUNT, await got, wrong];
  },
  async priorities(channel) {
    const { queue } = await channel.assertQueue("", { exclusive: true, maxPriority: 3 });
    for (let i = 0; i < COUNT; i++) channel.sendToQueue(queue, Buffer.from(String(i)), { priority: i % 4 });
    await channel.waitForConfirms();
    let last = 3;
    let wrong = 0;
    const got = await collect(channel, queue, COUNT, {}, (message) => {
      if (message.properties.priority > last) wrong += 1;
      last = message.properties.priority;
      return true;
    });
    return [COUNT, got, wrong];
  },
  async returned(channel) {
    const bodies = [];
    let wrong = 0;
    channel.on("return", (message) => {
      if (message.fields.replyCode !== 312) wrong += 1;
      bodies.push(message.content.toString());
    });
    await publish(channel, "amq.direct", "nobody", COUNT, { mandatory: true });
    return [COUNT, bodies, wrong]; // each came before its confirm
  },
  async "direct-reply"(channel, connection) {
    const server = await connection.createChannel();
    const { queue } = await server.assertQueue("", { exclusive: true });
    await server.consume(queue, (message) => {
      server.sendToQueue(message.properties.replyTo, message.content, { correlationId: message.properties.correlationId });
      server.ack(message);
    });
    let wrong = 0;
    const got = collect(channel, "amq.rabbitmq.reply-to", COUNT, { noAck: true }, (message) => {
      if (message.properties.correlationId !== message.content.toString()) wrong += 1;
      return true;
    });
    for (let i = 0; i < COUNT; i++) {
      channel.sendToQueue(queue, Buffer.from(String(i)), { replyTo: "amq.rabbitmq.reply-to", correlationId: String(i) });
    }
    return [COUNT, await got, wrong];
  },
  async headers(channel) {
    const { queue } = await channel.assertQueue("", { exclusive: true });
    await channel.assertExchange("js-headers", "headers", { durable: false, autoDelete: true });
    await channel.bindQueue(queue, "js-headers", "", { "x-match": "all", kind: "wanted", level: 2 });
    const got = collect(channel, queue, COUNT, {});
    for (let i = 0; i < COUNT; i++) {
      channel.publish("js-headers", "", Buffer.from(String(i)), { headers: { kind: "wanted", level: 2 } });
      channel.publish("js-headers", "", Buffer.from("odd"), { headers: { kind: "wanted", level: 3 } });
    }
    await channel.waitForConfirms();
    return [COUNT, await got];
  },
  async "cut-consumer"(channel) {
    const { queue } = await channel.assertQueue("js-cut", { durable: true });
    await publish(channel, "", queue, COUNT);
    const other = await amqp.connect(url);
    other.on("error", () => {});
    const away = await other.createChannel();
    await away.prefetch(10);
    await new Promise((resolve) => away.consume(queue, resolve));
    other.connection.stream.destroy(); // what it had and did not acknowledge is given to another
    const got = collect(channel, queue, COUNT, {});
    return [COUNT, await got];
  },
};

async function main() {
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    const connection = await amqp.connect(url);
    connection.on("error", () => {});
    const channel = await connection.createConfirmChannel();
    const [sent, bodies, wrong] = await scenario(channel, connection);
    tell(name, sent, bodies, wrong);
    await connection.close();
  }
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
