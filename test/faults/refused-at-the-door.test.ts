/**
 * A request that never reaches the gateway is counted under the status that its client saw.
 * Goal: refusals at the front door show up as 4xx in dashboards. Method: one raw request without a Host
 * header, and the metrics' text.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'

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
