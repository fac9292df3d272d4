// Publishes and subscribes by MQTT.js, and counts what came: node client.js HOST PORT VERSION COUNT
//
// Between the lines "cut me" and "done" the connections may be cut: the client comes back by itself.
'use strict'

const mqtt = require('mqtt')

const [host, port, version, countText] = process.argv.slice(2)
const count = Number(countText)
const url = `mqtt://${host}:${port}`
const got = [0, 1, 2].map(() => new Map())

function connect(clientId) {
  const options = { clientId, clean: false, protocolVersion: Number(version), reconnectPeriod: 50 }
  if (version === '5') options.properties = { sessionExpiryInterval: 600 }
  const client = mqtt.connect(url, options)
  client.on('error', () => {})
  return new Promise((resolve) => client.once('connect', () => resolve(client)))
}

const publish = (client, qos, number) =>
  new Promise((resolve) => client.publish(`js/${qos}/${number % 7}`, `${number}`, { qos }, resolve))

async function until(condition, ms) {
  const end = Date.now() + ms
  while (!condition() && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 20))
}

const hasAll = (...levels) => levels.every((qos) => got[qos].size === count)

async function main() {
  const subscriber = await connect('js-subscriber')
  subscriber.on('message', (topic, body) => {
    const seen = got[Number(topic.split('/')[1])]
    seen.set(body.toString(), (seen.get(body.toString()) ?? 0) + 1)
  })
  await subscriber.subscribeAsync('js/#', { qos: 2 })
  const publisher = await connect('js-publisher')
  for (let number = 0; number < count; number++) publish(publisher, 0, number)
  await until(() => hasAll(0), 10_000)
  console.log('cut me')
  for (let number = 0; number < count; number++) {
    await Promise.all([publish(publisher, 1, number), publish(publisher, 2, number)])
  }
  await until(() => hasAll(1, 2), 30_000)
  for (const [qos, seen] of got.entries()) {
    const received = [...seen.values()].reduce((sum, times) => sum + times, 0)
    const duplicated = received - seen.size
    console.log(`qos=${qos} sent=${count} received=${received} duplicated=${duplicated} lost=${count - seen.size}`)
  }
  console.log('done')
  process.exit(0)
}

main()
