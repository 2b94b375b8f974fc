/**
 * Goal: a CSV file is sent while it is read, and reading ends when its client disconnects.
 * Method: an endless file over plain HTTP.
 */
import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import t from 'tap'
import { datedName, sendCsv } from '../../src/control/send-csv.js'
import { listen } from '../helpers/listen.js'

void t.test('an endless file ends with its client', async (t) => {
  let read = 0
  let isEnded = false
  async function* parts(): AsyncGenerator<string> {
    try {
      for (;;) {
        read += 1
        yield await Promise.resolve('x'.repeat(65_536))
      }
    } finally {
      isEnded = true
    }
  }
  const sent: Promise<unknown>[] = []
  const server = createServer((req, res) => {
    sent.push(
      sendCsv({ req, res, requestId: 'r' }, { name: datedName('all', 0), parts: parts(), mayZip: true }),
    )
  })
  const port = await listen(t, server)
  for (const encoding of ['identity', 'gzip']) {
    isEnded = false
    const headers = { 'accept-encoding': encoding }
    const asked = request({ port, host: '127.0.0.1', headers })
    asked.end()
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    t.equal(response.headers['content-disposition'], 'attachment; filename="all-1970-01-01.csv"')
    await once(response, 'data')
    t.notOk(isEnded, 'the first lines arrive before the last ones are read')
    asked.destroy()
    await sent.at(-1)
    t.ok(isEnded, encoding)
    const after = read
    await new Promise(setImmediate)
    t.equal(read, after, 'nothing is read any more')
  }
})
