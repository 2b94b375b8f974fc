/**
 * Goal: each worker process exports its spans, and queued spans are exported when the program stops.
 * Method: `sluice serve` with two workers and a real receiver; requests on connections of their own.
 */
import t from 'tap'
import { startOtlpReceiver } from '../../observe/otlp-receiver.js'
import { startServe, until } from '../program.js'

void t.test('each worker exports its spans, the last ones during the drain', async (t) => {
  const receiver = await startOtlpReceiver(t)
  const served = await startServe(
    t,
    { more: `telemetry: { otlp: '${receiver.url}' }` },
    { OTEL_BSP_SCHEDULE_DELAY: '60000' },
  )
  const servers = (): number[] =>
    receiver.spans.filter(({ kind }) => kind === 2).map(({ resource }) => Number(resource['process.pid']))
  const answered = new Set<unknown>()
  let sent = 0
  await until(async () => {
    const reply = await served.chat()
    t.equal(reply.status, 200)
    await reply.text()
    sent += 1
    for (const line of served.program.lines()) if (line['msg'] === 'exchange') answered.add(line['pid'])
    return answered.size === 2
  })
  t.same(receiver.spans, [], 'spans are exported in batches')
  const metrics = await fetch(`http://127.0.0.1:${served.opsPort}/metrics`, {
    headers: { accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' },
  })
  t.match(metrics.headers.get('content-type'), /^application\/openmetrics-text; version=1\.0\.0/)
  const exemplars = [...(await metrics.text()).matchAll(/ # \{trace_id="([0-9a-f]{32})"\} /g)]
  served.program.child.kill('SIGTERM')
  t.equal(await served.program.ended, 0)
  t.equal(servers().length, sent, 'no span is lost')
  t.same(new Set(servers()), answered, 'of both workers')
  const exported = new Set(receiver.spans.map(({ traceId }) => traceId))
  t.ok(exemplars.length > 0)
  t.ok(
    exemplars.every(([, id = '']) => exported.has(id)),
    'exemplars name exported traces',
  )
})
