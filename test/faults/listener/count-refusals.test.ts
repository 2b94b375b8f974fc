/**
 * Goal: requests that the listener refuses are counted under the status that the client received, so that
 * dashboards show them as 4xx.
 * Method: one raw request without a Host header, and the text of the metrics.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'

void t.test('a refusal at the front door is counted with its status', async (t) => {
  const gateway = await startGateway(t)
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write('GET /v1/models HTTP/1.1\r\n\r\n')
  socket.resume()
  await once(socket, 'close')
  const counted = (await gateway.metrics.text())
    .split('\n')
    .filter((line) => line.startsWith('sluice_requests_total{'))
  t.equal(counted.length, 1)
  t.match(counted[0], /status="400".*outcome="malformed_request".* 1$/)
})

void t.test('a body that violates the protocol half-way is counted once', async (t) => {
  const gateway = await startGateway(t)
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write(
    'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n' +
      `authorization: Bearer ${gateway.secret}\r\ncontent-type: application/json\r\n` +
      'transfer-encoding: chunked\r\n\r\n5\r\n{"mod\r\nnot a length\r\n',
  )
  socket.resume()
  await once(socket, 'close')
  while (gateway.lines.length === 0) await setImmediate()
  const counts = (await gateway.metrics.text())
    .split('\n')
    .filter((line) => line.startsWith('sluice_requests_total{'))
    .map((line) => Number(line.split(' ').at(-1)))
  t.same(counts, [1])
})

void t.test('a model list is not a failure, although it has no route', async (t) => {
  const gateway = await startGateway(t)
  const headers = { authorization: `Bearer ${gateway.secret}` }
  const listed = await fetch(`${gateway.baseUrl}/models`, { headers })
  await listed.text()
  while (gateway.lines.length === 0) await setImmediate()
  const text = await gateway.metrics.text()
  t.match(
    text,
    'sluice_requests_total{ingress="chat",route="none",upstream="none",status="200",outcome="ok"} 1',
  )
})
